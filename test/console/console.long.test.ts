import { consoleSuite } from './suite.ts'

consoleSuite('the console in a browser, with 300 accounts', 300)
