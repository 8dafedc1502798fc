import { consoleSuite } from './suite.ts'

consoleSuite('the console in a browser, with 60 accounts', 60)
