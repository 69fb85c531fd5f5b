import type { DemoFile } from '../../../cli/command-line/demo-file.ts';
import type { Client, Event } from '../../../client/index.ts';

export type EventType = Event['eventType'];

/** `demo`: the running `npm start`, for what only a gateway can do. Undefined at another API. */
export interface Scene {
  readonly client: Client;
  readonly demo: DemoFile | undefined;
}
