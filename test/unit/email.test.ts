import { describe, expect, it } from 'vitest';
import { emailNormalForm } from '../../domain/email.ts';

describe('the normal form of an e-mail address', () => {
  it.each([
    ['Ada@Example.com', 'ada@example.com'],
    [' ada@example.com\t', 'ada@example.com'],
    ['ÄNNE@Beispiel.example', 'änne@beispiel.example'],
    ['A\u0308NNE@Beispiel.example', '\u00e4nne@beispiel.example'],
    ['ЮЛИЯ@пример.рф', 'юлия@пример.рф'],
    ['ΝΙΚΟΣ.Α@παράδειγμα.gr', 'νικοσ.α@παράδειγμα.gr'],
    ['νικος.α@παράδειγμα.gr', 'νικοσ.α@παράδειγμα.gr'],
    ['weiß@example.com', 'weiß@example.com'],
    ['', ''],
  ])('of %j is %j, and so is its own [D-§7]', (email, normal) => {
    expect(emailNormalForm(email)).toBe(normal);
    expect(emailNormalForm(normal)).toBe(normal);
  });

  it.each([null, undefined])('of %s is null [D-§7]', (email) => {
    expect(emailNormalForm(email)).toBeNull();
  });
});
