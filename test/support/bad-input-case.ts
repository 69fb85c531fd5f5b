import type { CallOptions } from './api-environment.ts';

/** A malformed request and its exact answer. */
export interface Case {
  /** The defect of the request, and the rule that forbids it. */
  name: string;
  method?: string;
  path: string;
  send: CallOptions;
  status?: number;
  code?: string;
  description: string;
}

export const json = (body: unknown): CallOptions => ({ body });
export const raw = (text: string | Buffer, headers: Record<string, string> = {}): CallOptions => ({
  raw: text,
  headers,
});

/** Well-formed ids that do not exist. */
export const UNKNOWN_SUB = 'sub_0000000000000000000000';
export const UNKNOWN_WHC = 'whc_0000000000000000000000';
export const UNKNOWN_CLK = 'clk_0000000000000000000000';
