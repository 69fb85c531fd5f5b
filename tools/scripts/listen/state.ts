import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { writeForOwner } from '../../embedded/secrets.ts';

/** What `npm run listen` keeps for each merchant. */
export interface Listening {
  readonly secret: string;
  /** The cursor behind the last event that was printed and forwarded. */
  readonly after?: string;
}

type States = Readonly<Record<string, Listening>>;

/** `merchant`: address of the API and key id. A cursor of one API means nothing to another. */
export function openState(file: string, merchant: string) {
  const states = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as States) : {};
  let state = states[merchant] ?? { secret: `whsec_${randomBytes(24).toString('base64')}` };
  const save = (change: Partial<Listening>): void => {
    state = { ...state, ...change };
    writeForOwner(file, { ...states, [merchant]: state });
  };
  save({});
  return { secret: state.secret, after: state.after, save };
}
