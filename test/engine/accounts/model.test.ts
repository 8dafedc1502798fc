/**
 * The model of an account (model/): what other mail programs and our own commands do to a mailbox while connections
 * break, answers are lost, views lag, folders are numbered anew and the process crashes. At every quiet point the index
 * is what the server has, counts are those of its rows, and the changes are what has happened: each told once, in
 * order, of messages that keep their ids. What fails is added to the list below as its counterexample is printed.
 * In a process of its own: its clock is virtual.
 */
import { checkModel } from './model/check.ts'
import type { Scenario } from './model/steps.ts'

const failedOnce: readonly Scenario[] = [
  // Our append beside a server that is only waiting for the clock.
  {
    server: 'all',
    reading: 'at once',
    inbox: 2,
    archive: 3,
    synced: true,
    steps: [
      { step: { do: 'create', by: 'them', name: 'Work' }, after: null, wait: true },
      { step: { do: 'quiet' }, after: null, wait: true },
      { step: { do: 'append', by: 'us', folder: 0, flags: ['\\Seen', 'work'] }, after: null, wait: false },
      { step: { do: 'pass', ms: 600_000 }, after: null, wait: true },
    ],
  },
  // A move while the other folders have yet to be looked at.
  {
    server: 'all',
    reading: 'at once',
    inbox: 2,
    archive: 1,
    synced: true,
    steps: [{ step: { do: 'move', by: 'them', pick: 2, folder: 2 }, after: null, wait: false }],
  },
  // A copy whose answer was lost, and our removal of the message before the copy is read.
  {
    server: 'plain',
    reading: 'at once',
    inbox: 1,
    archive: 1,
    synced: true,
    steps: [
      { step: { do: 'lose', loss: 'after', after: 5 }, after: null, wait: false },
      { step: { do: 'flag', by: 'us', pick: 28, flags: ['\\Seen', 'work'] }, after: null, wait: false },
      { step: { do: 'copy', by: 'us', pick: 13, folder: 1 }, after: null, wait: true },
      { step: { do: 'append', by: 'them', folder: 1, flags: ['\\Seen'] }, after: null, wait: false },
      { step: { do: 'remove', by: 'us', pick: 27 }, after: null, wait: true },
    ],
  },
  // A message leaves the folder before it is read, and another one has its UID.
  {
    server: 'all',
    inbox: 2,
    archive: 0,
    reading: 'at once',
    synced: false,
    steps: [
      { step: { do: 'reuse', folder: 0 }, after: { of: 'answers', count: 38 }, wait: false },
      { step: { do: 'flag', by: 'them', pick: 0, flags: [] }, after: null, wait: true },
    ],
  },
  // We remove a message from a folder that was numbered anew a moment ago.
  {
    server: 'all',
    inbox: 0,
    archive: 1,
    reading: 'at once',
    synced: true,
    steps: [
      { step: { do: 'renumber', folder: 1, keeps: 'all' }, after: null, wait: true },
      { step: { do: 'pass', ms: 30_000 }, after: null, wait: true },
      { step: { do: 'remove', by: 'us', pick: 0 }, after: null, wait: true },
    ],
  },
  // A folder is numbered anew, and holds nothing; the process ends as soon as the index says so.
  {
    server: 'all',
    inbox: 0,
    archive: 1,
    reading: 'slow',
    synced: true,
    steps: [
      { step: { do: 'crash', downMs: 0 }, after: { of: 'writes', count: 0 }, wait: false },
      { step: { do: 'renumber', folder: 1, keeps: 'none' }, after: null, wait: false },
      { step: { do: 'pass', ms: 5000 }, after: null, wait: true },
    ],
  },
  // Mail moves to and fro before INBOX is read for the first time, and INBOX is numbered anew.
  {
    server: 'all',
    inbox: 0,
    archive: 0,
    reading: 'at once',
    synced: false,
    steps: [
      { step: { do: 'append', by: 'them', folder: 1, flags: [] }, after: { of: 'answers', count: 0 }, wait: true },
      { step: { do: 'move', by: 'them', pick: 3, folder: 1 }, after: { of: 'writes', count: 2 }, wait: false },
      { step: { do: 'move', by: 'them', pick: 6, folder: 0 }, after: { of: 'answers', count: 26 }, wait: false },
      { step: { do: 'renumber', folder: 0, keeps: 'all' }, after: null, wait: false },
      { step: { do: 'pass', ms: 60_000 }, after: null, wait: false },
    ],
  },
]

checkModel(1, 50, failedOnce)
