import { commandOf, endsAlready } from '../domain/declaration.ts';
import type { Declaration, DeclarationOutcome, NamedContract } from '../domain/declaration.ts';
import type { StreamRef } from '../domain/events.ts';
import { DomainError } from '../domain/errors.ts';
import { outsideRequest } from '../runtime/request-scope.ts';
import { orWarn } from './client.ts';
import type { TemporalDeps } from './client.ts';
import type { SubscriptionWorkflows } from './subscriptions/workflows.ts';

export interface DeclarationRef {
  readonly merchantId: string;
  readonly id: string;
}

/** `isExecutable`: the merchant's setting allows it. `contract`: null if the declaration names none. */
export interface ReadDeclaration {
  readonly declaration: Declaration;
  readonly contract: NamedContract | null;
  readonly isExecutable: boolean;
  readonly withdrawalDays: number;
}

export interface DeclarationRows<Read extends ReadDeclaration> {
  /** Null if the declaration is handled. */
  readonly read: (ref: DeclarationRef) => Promise<Read | null>;
  /** Records the outcome once, with the merchant's event. Returns the event's stream. */
  readonly settle: (read: Read, outcome: DeclarationOutcome) => Promise<StreamRef>;
}

interface Deps<Read extends ReadDeclaration> {
  readonly rows: DeclarationRows<Read>;
  readonly workflows: Pick<SubscriptionWorkflows, 'execute'>;
  readonly wakeStream: (stream: StreamRef) => Promise<void>;
}

/**
 * Executes a declaration, or tells the merchant only, once. A repeat is safe.
 * @throws DomainError `service_unavailable`: it must be repeated.
 */
export async function handleDeclaration<Read extends ReadDeclaration>(
  deps: Deps<Read>,
  ref: DeclarationRef,
): Promise<void> {
  for (let isFirst = true; ; isFirst = false) {
    const read = await deps.rows.read(ref);
    if (read === null) return;
    const outcome = await outcomeOf(deps, read);
    // The status may have changed since the read.
    if (outcome === 'refused' && isFirst) continue;
    const stream = await deps.rows.settle(read, outcome === 'refused' ? 'told' : outcome);
    return deps.wakeStream(stream);
  }
}

async function outcomeOf(
  { workflows }: Pick<Deps<ReadDeclaration>, 'workflows'>,
  { declaration, contract, isExecutable, withdrawalDays }: ReadDeclaration,
): Promise<DeclarationOutcome | 'refused'> {
  if (contract === null) return 'unmatched';
  if (isExecutable && endsAlready(declaration, contract)) return 'executed';
  const command = isExecutable ? commandOf(declaration, contract, withdrawalDays) : null;
  if (command === null || contract.state === null) return 'told';
  const { kind } = await workflows.execute(contract.state, command);
  if (kind === 'pending') throw new DomainError('service_unavailable');
  return kind === 'result' ? 'executed' : 'refused';
}

/** Handles declarations in the background. A failure is logged; the sweep handles the declaration again. */
export function declarationTaker<Read extends ReadDeclaration>({
  logger,
  ...deps
}: Deps<Read> & Pick<TemporalDeps, 'logger'>) {
  return (ref: DeclarationRef): void => {
    const handle = () => handleDeclaration(deps, ref);
    void outsideRequest(() =>
      orWarn(logger, ref, 'declaration not handled; the sweep will handle it', handle),
    );
  };
}
