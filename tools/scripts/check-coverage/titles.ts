import { readFileSync } from 'node:fs';
import ts from 'typescript';

export interface Titles {
  /** Titles as written: placeholders such as `%s` and `${…}` are not filled in. */
  readonly running: readonly string[];
  readonly skipped: readonly string[];
}

const TESTS = ['test', 'it', 'describe'];
const NOT_RUN = ['skip', 'todo', 'fails'];

/** A string that ends like `… [D-05, IF-4.6]` is the title of a case in a table-driven test. */
const CITING_TITLE = /\[(?:D-|IF-)[^\]]*\]$/;

/**
 * The titles in a test file: of every `test`, `it` and `describe`, and of the cases of table-driven tests.
 * The title of a case is a string that ends in rule ids, or the value of a property `name`.
 */
export function readTitles(path: string): Titles {
  const text = readFileSync(path, 'utf8');
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const running: string[] = [];
  const skipped: string[] = [];
  const visit = (node: ts.Node, isSkipped: boolean): void => {
    let isSkippedHere = isSkipped;
    if (ts.isCallExpression(node)) {
      const names = calledNames(node.expression);
      const [title] = node.arguments;
      if (TESTS.includes(names[0] ?? '') && title && isText(title)) {
        isSkippedHere ||= names.some((name) => NOT_RUN.includes(name));
        (isSkippedHere ? skipped : running).push(textOf(title));
      }
    }
    if (isCaseName(node)) running.push(textOf(node.initializer));
    if (ts.isStringLiteralLike(node) && !isSkippedHere && CITING_TITLE.test(node.text)) {
      running.push(node.text);
    }
    ts.forEachChild(node, (child) => visit(child, isSkippedHere));
  };
  visit(file, false);
  return { running: [...new Set(running)], skipped };
}

/** The names of a called expression from left to right: `test` and `skip` for `test.skip`. */
function calledNames(callee: ts.Expression): string[] {
  if (ts.isIdentifier(callee)) return [callee.text];
  if (ts.isPropertyAccessExpression(callee)) {
    return [...calledNames(callee.expression), callee.name.text];
  }
  return ts.isCallExpression(callee) ? calledNames(callee.expression) : [];
}

type Text = ts.StringLiteralLike | ts.TemplateExpression;

function isText(node: ts.Expression): node is Text {
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
}

function isCaseName(node: ts.Node): node is ts.PropertyAssignment & { initializer: Text } {
  return (
    ts.isPropertyAssignment(node) && node.name.getText() === 'name' && isText(node.initializer)
  );
}

function textOf(node: Text): string {
  return ts.isStringLiteralLike(node) ? node.text : node.getText().slice(1, -1);
}
