/**
 * The model of an account (model/): what other mail programs and our own commands do to a mailbox while connections
 * break, answers are lost, views lag, folders are numbered anew and the process crashes. At every quiet point the index
 * is what the server has, counts are those of its rows, and the changes are what has happened: each told once, in
 * order, of messages that keep their ids. What fails is added to the list below as its counterexample is printed.
 */
import { checkModel } from './model/check.ts'
import type { Scenario } from './model/steps.ts'

const failedOnce: readonly Scenario[] = []

checkModel(1, 50, failedOnce)
