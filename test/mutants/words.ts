/**
 * Plugin of Stryker: text that people read makes no mutants, since a test could only hold the same text once more. It
 * is known by its place, not by its look: log calls, the message of an error, `why` of a verdict. Codes, names of
 * parameters and conditions stay.
 */
interface Node {
  readonly type: string
  readonly name?: string
  readonly callee?: Node
  readonly object?: Node
  readonly property?: Node
  readonly key?: Node
  readonly value?: Node
  readonly test?: Node
  readonly arguments?: readonly Node[]
}

interface NodePath {
  readonly node: Node
  readonly parent?: Node
  readonly parentPath?: NodePath | null
}

/** Which argument is the text. */
const textArgument: Readonly<Record<string, number>> = {
  Error: 0,
  AppError: 1,
  badParameter: 1,
  refused: 1,
  wrong: 2,
  lateFailure: 2,
  promiseActor: 0,
  callbackActor: 0,
}

const isText = ({ type }: Node): boolean => type === 'StringLiteral' || type === 'TemplateLiteral'

function isLogCall({ type, callee }: Node): boolean {
  const { object } = callee ?? {}
  return type === 'CallExpression' && (object?.name === 'log' || object?.property?.name === 'log')
}

/** `why: text`, or one of `why: condition ? text : text`. */
function isWhy({ node, parent, parentPath }: NodePath): boolean {
  if (parent?.type === 'ConditionalExpression' && parentPath) return parent.test !== node && isWhy(parentPath)
  return parent?.type === 'ObjectProperty' && parent.key?.name === 'why' && parent.value === node
}

export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'words',
    value: {
      shouldIgnore(path: NodePath): string | undefined {
        const { node, parent } = path
        if (isLogCall(node)) return 'a log line'
        if (parent === undefined || !isText(node)) return undefined
        const at = textArgument[parent.callee?.name ?? '']
        if (at !== undefined && parent.arguments?.[at] === node) return 'the words of an error'
        return isWhy(path) ? 'the words of a verdict' : undefined
      },
    },
  },
]
