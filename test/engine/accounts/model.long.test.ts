/** More of model.test.ts. */
import { checkModel } from './model/check.ts'

checkModel(10, 100)
