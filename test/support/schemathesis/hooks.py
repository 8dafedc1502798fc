"""Keeps schemathesis on this machine and, most of the time, on data that exist.

The world (FUZZ_WORLD, written by world.ts) says which ids there are. Three calls of four get real path parameters; what is deleted
comes from lists of its own, which may run out. Mail servers and callback receivers are always those of the test.
"""

import itertools
import json
import os
import time

import requests
import schemathesis

with open(os.environ["FUZZ_WORLD"], encoding="utf-8") as file:
    WORLD = json.load(file)

COUNT = itertools.count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    turn = next(COUNT)
    if turn % 4 != 0 and isinstance(case.path_parameters, dict):
        real = real_values(case.method.upper(), case.path, turn)
        for name in list(case.path_parameters):
            if name in real:
                case.path_parameters[name] = real[name]
    stay_here(case.body, turn)
    stay_here(case.query, turn)
    if case.path.endswith("/discovery") and isinstance(case.query, dict):
        email = case.query.get("email")
        if isinstance(email, str) and "@" in email:
            case.query["email"] = email.split("@")[0] + ("@gmail.com" if turn % 2 else "@localhost")
    return None


@schemathesis.check
def no_lasting_server_error(context, response, case):
    """No 5xx. A 503 with Retry-After (a mailbox or a folder is read for the first time) is over within 20 s."""
    until = time.monotonic() + 20
    said = response
    while said.status_code == 503 and "retry-after" in said.headers and time.monotonic() < until:
        time.sleep(0.1)
        with requests.Session() as session:
            said = session.send(response.request, timeout=20)
    assert said.status_code < 500, f"server error {said.status_code}: {said.text}"


def real_values(method, path, turn):
    """Path parameters of this operation."""
    level = "user" if path.startswith(("/lite/users/", "/2.0/accounts/{id}")) else "application"
    values = dict(WORLD["values"])
    values.update(WORLD[level])
    if path.startswith("/2.0/"):
        values.update(WORLD["v2"][level])
    if method == "DELETE" or path.endswith("/secret"):
        for name, spares in WORLD["spare"][level].items():
            if path.endswith("{" + name + "}"):
                values[name] = spares[turn % len(spares)]
        if path in ("/lite/users/{id}", "/2.0/accounts/{id}"):
            values["id"] = WORLD["spare"]["users"][turn % len(WORLD["spare"]["users"])]
        if path.endswith(("/email_accounts/{label}", "/sources/{label}")):
            values["label"] = WORLD["spare"]["label"]
        if path.endswith(("/message/{message_id}", "/messages/{message_id}")):
            del values["message_id"]
    if method != "GET" and path.endswith("/folders/{folder}"):
        del values["folder"]
    return values


def stay_here(values, turn):
    if not isinstance(values, dict):
        return
    for name, value in list(values.items()):
        if name == "server":
            values[name] = WORLD["imap"]["host"]
        elif name == "port" and turn % 3:
            values[name] = WORLD["imap"]["port"]
        elif name == "username" and turn % 2:
            values[name] = WORLD["imap"]["username"]
        elif name == "password" and turn % 2:
            values[name] = WORLD["imap"]["password"]
        elif name.endswith("_url") and isinstance(value, str) and value.lower().startswith("http"):
            values[name] = WORLD["receiver"] + "/fuzz"
