/**
 * Time in ms for which a server of the tests keeps an idle connection, as `api/main.ts` does. With Node's default of
 * 5 s, a slow test would send requests on connections that the server has closed.
 */
export const KEEP_ALIVE_MS = 65_000;
