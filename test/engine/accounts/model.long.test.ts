/** More of model.test.ts. In a process of its own: its clock is virtual. */
import { checkModel } from './model/check.ts'

checkModel(10, 100)
