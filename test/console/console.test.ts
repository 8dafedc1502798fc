import { consoleSuite } from './suite.ts'

consoleSuite('the console in a browser', 4)
