import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DECLINES } from '../../domain/declines.ts';
import { TEST_CARDS, testCard } from '../../gateways/sandbox/test-cards.ts';

describe('the published test cards', () => {
  it('have a number for every decline code [D-61]', () => {
    const covered = new Set(TEST_CARDS.flatMap(({ code }) => code ?? []));
    expect([...covered].toSorted()).toEqual(Object.keys(DECLINES).toSorted());
  });

  it('give well-known numbers such as 4242 4242 4242 4242 their usual behaviour [D-61]', () => {
    const behaviour = (number: string) => {
      const card = testCard(number);
      return [card?.code, card?.when];
    };
    expect(behaviour('4242424242424242')).toEqual([null, null]);
    expect(behaviour('4000000000000002')).toEqual(['card_declined', 'charge']);
    expect(behaviour('4000000000009995')).toEqual(['insufficient_funds', 'charge']);
    expect(behaviour('4000000000000069')).toEqual(['expired_card', 'charge']);
    expect(behaviour('4000000000000127')).toEqual(['invalid_cvc', 'charge']);
    expect(behaviour('4000000000009987')).toEqual(['lost_card', 'charge']);
    expect(behaviour('4000000000000341')).toEqual(['card_declined', 'later_charges']);
  });

  it('have unique numbers, and `when` is set exactly for the cards with a decline code [D-61]', () => {
    expect(new Set(TEST_CARDS.map((card) => card.number)).size).toBe(TEST_CARDS.length);
    for (const { number, code, when } of TEST_CARDS) {
      expect(number).toMatch(/^\d{13,16}$/);
      expect(code === null).toBe(when === null);
    }
  });

  it('have valid check digits, except 4242 4242 4242 4241 [D-61]', () => {
    const wrong = TEST_CARDS.filter(({ number }) => checksum(number) % 10 !== 0);
    expect(wrong.map((card) => card.number)).toEqual(['4242424242424241']);
  });

  it('equal the table in gateways/README.md, row for row [D-61]', () => {
    const readme = readFileSync('gateways/README.md', 'utf8');
    const rows = readme.split('\n').flatMap((line) => {
      const cells = line.split('|').map((cell) => cell.trim());
      return /^[\d ]{13,}$/.test(cells[1] ?? '') ? [cells.slice(1, 4)] : [];
    });
    expect(rows).toEqual(
      TEST_CARDS.map(({ number, brand, label }) => [
        number.length < 16
          ? number.replace(/^(.{4})(.{6})/, '$1 $2 ')
          : number.replaceAll(/(.{4})(?=.)/g, '$1 '),
        brand,
        label,
      ]),
    );
  });
});

/** The Luhn sum: every second digit from the right is doubled, and all digits are added. */
function checksum(number: string): number {
  return Array.from(number)
    .toReversed()
    .reduce((sum, digit, index) => {
      const value = Number(digit) * (index % 2 === 0 ? 1 : 2);
      return sum + (value > 9 ? value - 9 : value);
    }, 0);
}
