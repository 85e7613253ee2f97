/** What is made of a source file: every small change of its code that a test should notice, by the parser of TypeScript. */
import { isTypeNode, type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast';
import {
  isBinaryExpression,
  isCallExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
} from 'typescript/unstable/ast/is';

export interface Change {
  readonly mutator: string;
  readonly from: number;
  readonly to: number;
  /**
   * Runs whenever the change makes a difference. An operator that decides whether its right side runs counts as that side, so it
   * is the left one.
   */
  readonly runsAt: number;
  /** Stands in the place of the text from `from` up to `to`. */
  readonly text: string;
}

type Place = Node & Readonly<Record<string, Node | undefined>>;

const OPERATORS: Readonly<Record<string, readonly string[]>> = {
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
  '&': ['|'],
  '|': ['&'],
  '<<': ['>>'],
  '>>': ['<<'],
  '>>>': ['<<'],
  '+=': ['-='],
  '-=': ['+='],
  '*=': ['/='],
  '/=': ['*='],
  '&&=': ['||='],
  '||=': ['&&='],
  '??=': ['&&='],
};

/** A method and what is called instead; nothing where the call is left out, so that its object stands alone. */
const METHODS: Readonly<Record<string, string>> = {
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  some: 'every',
  every: 'some',
  min: 'max',
  max: 'min',
  floor: 'ceil',
  ceil: 'floor',
  toUpperCase: 'toLowerCase',
  toLowerCase: 'toUpperCase',
  trimStart: 'trimEnd',
  trimEnd: 'trimStart',
  trim: '',
  slice: '',
  filter: '',
  sort: '',
  toSorted: '',
  reverse: '',
  toReversed: '',
};

/** Statements and parts that hold no code that runs, or names that a test cannot miss. */
const SKIPPED: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.ImportDeclaration,
  SyntaxKind.ExportDeclaration,
  SyntaxKind.InterfaceDeclaration,
  SyntaxKind.TypeAliasDeclaration,
]);

export function changesOf(file: SourceFile): Change[] {
  const changes: Change[] = [];
  const visit = (node: Node): void => {
    if (SKIPPED.has(node.kind) || isTypeNode(node)) return;
    for (const [mutator, at, text] of changesAt(node as Place, file)) {
      const from = 'kind' in at ? at.getStart(file) : at.from;
      const to = 'kind' in at ? at.end : at.to;
      const runsAt = isBinaryExpression(node) ? node.getStart(file) : from;
      if (file.text.slice(from, to) !== text) changes.push({ mutator, from, to, runsAt, text });
    }
    node.forEachChild(visit);
  };
  visit(file);
  return changes;
}

type Found = readonly [mutator: string, at: Node | { readonly from: number; readonly to: number }, text: string];

function* changesAt(node: Place, file: SourceFile): Generator<Found> {
  if (isBinaryExpression(node)) {
    const token = node.operatorToken;
    for (const other of OPERATORS[token.getText(file)] ?? []) yield ['operator', token, other];
  }
  if (isCallExpression(node)) yield* methodSwap(node as unknown as Place, file);
  const { questionDotToken } = node;
  if (questionDotToken !== undefined) yield ['optional chaining', questionDotToken, isPropertyAccessExpression(node) ? '.' : ''];
  switch (node.kind) {
    case SyntaxKind.PrefixUnaryExpression:
    case SyntaxKind.PostfixUnaryExpression:
      yield* unary(node, file);
      break;
    case SyntaxKind.TrueKeyword:
      yield ['boolean', node, 'false'];
      break;
    case SyntaxKind.FalseKeyword:
      yield ['boolean', node, 'true'];
      break;
    case SyntaxKind.StringLiteral:
      // The name of a member is no text.
      if (!(isPropertyAssignment(node.parent) && node.parent.name.pos === node.pos))
        yield ['string', node, node.getText(file).length > 2 ? "''" : "'mutant'"];
      break;
    case SyntaxKind.TemplateExpression:
    case SyntaxKind.NoSubstitutionTemplateLiteral:
      yield ['string', node, '``'];
      break;
    case SyntaxKind.ArrayLiteralExpression:
      yield ['array', node, '[]'];
      break;
    case SyntaxKind.ObjectLiteralExpression:
      yield ['object', node, '{}'];
      break;
    case SyntaxKind.IfStatement:
    case SyntaxKind.ConditionalExpression: {
      const condition = node['expression'] ?? node['condition'];
      if (condition !== undefined) yield* [['condition', condition, 'true'] as const, ['condition', condition, 'false'] as const];
      break;
    }
    case SyntaxKind.WhileStatement:
    case SyntaxKind.ForStatement: {
      const condition = node['expression'] ?? node['condition'];
      if (condition !== undefined) yield ['condition', condition, 'false'];
      break;
    }
    case SyntaxKind.Block:
      if (/\w/.test(withoutComments(node.getText(file)))) yield ['block', node, '{}'];
      break;
    case SyntaxKind.ReturnStatement:
      yield [
        'return',
        { from: node.getStart(file), to: node.getStart(file) + 'return'.length },
        node['expression'] === undefined ? '' : 'void ',
      ];
      break;
    case SyntaxKind.ArrowFunction: {
      const { body } = node;
      if (body !== undefined && body.kind !== SyntaxKind.Block) yield ['arrow function', body, 'undefined'];
      break;
    }
  }
}

const UNARY: Readonly<Record<string, string>> = { '!': '', '-': '', '~': '', '++': '--', '--': '++' };

function* unary(node: Place, file: SourceFile): Generator<Found> {
  const text = node.getText(file);
  const operator = /^(\+\+|--|[!~-])/.exec(text)?.[1];
  const other = operator === undefined ? undefined : UNARY[operator];
  const from = node.getStart(file);
  if (operator !== undefined && other !== undefined) yield ['unary', { from, to: from + operator.length }, other];
  const behind = /(\+\+|--)$/.exec(text)?.[1];
  if (behind !== undefined) yield ['unary', { from: node.end - 2, to: node.end }, UNARY[behind] ?? ''];
}

function* methodSwap(call: Place, file: SourceFile): Generator<Found> {
  const callee = call['expression'];
  if (callee === undefined || !isPropertyAccessExpression(callee)) return;
  const other = METHODS[callee.name.getText(file)];
  if (other === undefined) return;
  if (other !== '') yield ['method', callee.name, other];
  else yield ['method', { from: callee.expression.end, to: call.end }, ''];
}

const withoutComments = (text: string): string => text.replaceAll(/\/\/.*|\/\*[\s\S]*?\*\//g, '');
