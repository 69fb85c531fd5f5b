import ts from 'typescript';

const TESTS = ['test', 'it', 'describe'];
const NOT_RUN = ['skip', 'todo', 'fails'];

/** A string that ends like `…` is the title of a case in a table-driven test. */
const CITING_TITLE = /\[(?:D-|IF-)[^\]]*\]$/;

/**
 * The titles of a test file that run: of every `test`, `it` and `describe`, and of the cases of table-driven
 * tests. A case's title is a string that ends in rule ids; a property `rules` is inserted into a title.
 */
export function readTitles(path: string, text: string): string[] {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const titles: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const names = calledNames(node.expression);
      const [title] = node.arguments;
      if (TESTS.includes(names[0] ?? '') && title && isText(title)) {
        if (names.some((name) => NOT_RUN.includes(name))) return;
        titles.push(title.getText());
      }
    }
    if (isRules(node)) titles.push(node.initializer.getText());
    if (ts.isStringLiteralLike(node) && CITING_TITLE.test(node.text)) titles.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return titles;
}

/** The names of a called expression from left to right: `test` and `skip` for `test.skip`. */
function calledNames(callee: ts.Expression): string[] {
  if (ts.isIdentifier(callee)) return [callee.text];
  if (ts.isPropertyAccessExpression(callee)) {
    return [...calledNames(callee.expression), callee.name.text];
  }
  return ts.isCallExpression(callee) ? calledNames(callee.expression) : [];
}

function isText(node: ts.Expression): boolean {
  return ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
}

function isRules(node: ts.Node): node is ts.PropertyAssignment {
  return (
    ts.isPropertyAssignment(node) && node.name.getText() === 'rules' && isText(node.initializer)
  );
}
