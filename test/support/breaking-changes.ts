/** The differences between two OpenAPI documents that could break a client of the first one. */

type Json = Readonly<Record<string, unknown>>;
/** `request`: the client sends the value. `answer`: the service sends it. */
type Direction = 'request' | 'answer';

interface Pair {
  readonly direction: Direction;
  readonly place: string;
  readonly released: Json;
  readonly present: Json;
}

const METHODS = ['get', 'post', 'put', 'delete'];
const UPPER_LIMITS = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties'];
const LOWER_LIMITS = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties'];

export function breakingChanges(released: Json, present: Json): string[] {
  const comparison = new Comparison(released, present);
  return [
    ...comparison.operations('paths', 'request'),
    ...comparison.operations('webhooks', 'answer'),
  ];
}

class Comparison {
  private readonly released: Json;
  private readonly present: Json;
  /** The pairs of named schemas that are being compared. A schema may contain itself. */
  private readonly open = new Set<string>();

  constructor(released: Json, present: Json) {
    this.released = released;
    this.present = present;
  }

  /** `direction`: of the request body. */
  operations(section: 'paths' | 'webhooks', direction: Direction): string[] {
    const after = objectIn(this.present, section);
    return Object.entries(objectIn(this.released, section)).flatMap(([path, item]) =>
      METHODS.filter((method) => method in (item as Json)).flatMap((method) => {
        const place = `${method.toUpperCase()} ${path}`;
        const present = objectIn(objectIn(after, path), method);
        if (Object.keys(present).length === 0) return [`${place} is removed`];
        const pair = { direction, place, released: objectIn(item as Json, method), present };
        return [...this.operation(pair), ...this.parameters(pair), ...this.answers(pair)];
      }),
    );
  }

  private operation({ direction, place, released, present }: Pair): string[] {
    const [before, after] = [objectIn(released, 'requestBody'), objectIn(present, 'requestBody')];
    const isNeeded = after['required'] === true && before['required'] !== true;
    const bodies = { released: schemaOf(before), present: schemaOf(after) };
    return [
      ...changed(`${place}: operationId`, released['operationId'], present['operationId']),
      ...changed(`${place}: security`, released['security'], present['security']),
      ...(isNeeded && direction === 'request' ? [`${place}: the body is required now`] : []),
      ...this.schemas({ direction, place: `${place}: body`, ...bodies }),
    ];
  }

  private parameters({ place, released, present }: Pair): string[] {
    const before = this.parametersOf(this.released, released);
    const after = this.parametersOf(this.present, present);
    const lost = [...before].flatMap(([name, parameter]) => {
      const at = `${place}: ${name}`;
      const now = after.get(name);
      if (now === undefined) return [`${at} is removed`];
      const schemas = { released: objectIn(parameter, 'schema'), present: objectIn(now, 'schema') };
      return this.schemas({ direction: 'request', place: at, ...schemas });
    });
    const needed = [...after].filter(
      ([name, { required }]) => required === true && before.get(name)?.['required'] !== true,
    );
    return [...lost, ...needed.map(([name]) => `${place}: ${name} is required now`)];
  }

  private parametersOf(document: Json, operation: Json): Map<string, Json> {
    const list = (operation['parameters'] ?? []) as Json[];
    const found = list.map((one) => target(document, one));
    return new Map(found.map((one) => [`${String(one['in'])} ${String(one['name'])}`, one]));
  }

  private answers({ place, released, present }: Pair): string[] {
    const after = objectIn(present, 'responses');
    return Object.entries(objectIn(released, 'responses')).flatMap(([status, answer]) => {
      const at = `${place}: ${status}`;
      const before = target(this.released, answer as Json);
      const now = target(this.present, objectIn(after, status));
      if (!(status in after)) return status.startsWith('2') ? [`${at} is removed`] : [];
      const headers = Object.keys(objectIn(before, 'headers'));
      const lost = headers.filter((name) => !(name in objectIn(now, 'headers')));
      const schemas = { released: schemaOf(before), present: schemaOf(now) };
      return [
        ...lost.map((name) => `${at}: header ${name} is removed`),
        ...this.schemas({ direction: 'answer', place: at, ...schemas }),
      ];
    });
  }

  private schemas(pair: Pair): string[] {
    const { direction, released, present } = pair;
    if (Object.keys({ ...released, ...present }).length === 0) return [];
    const names = `${direction} ${String(released['$ref'])} ${String(present['$ref'])}`;
    if ('$ref' in released && this.open.has(names)) return [];
    this.open.add(names);
    const problems = this.variants({
      ...pair,
      released: target(this.released, released),
      present: target(this.present, present),
    });
    this.open.delete(names);
    return problems;
  }

  /** Each variant that one side sends must fit one that the other side takes. */
  private variants(pair: Pair): string[] {
    const [before, after] = [variantsOf(pair.released), variantsOf(pair.present)];
    if (before === null && after === null) return this.schema(pair);
    const all = [before ?? [pair.released], after ?? [pair.present]] as const;
    const [sent, taken] = pair.direction === 'request' ? all : [all[1], all[0]];
    return sent.flatMap((one) => {
      const fits = taken.map((other) =>
        this.schemas({
          ...pair,
          released: pair.direction === 'request' ? one : other,
          present: pair.direction === 'request' ? other : one,
        }),
      );
      return fits.toSorted((a, b) => a.length - b.length)[0] ?? [];
    });
  }

  private schema(pair: Pair): string[] {
    const { direction, place, released, present } = pair;
    const types = [typesOf(released), typesOf(present)] as const;
    const [sent, taken] = direction === 'request' ? types : [types[1], types[0]];
    const isWider = taken.length > 0 && sent.some((type) => !taken.includes(type));
    if (isWider || (sent.length === 0) !== (taken.length === 0)) {
      return [`${place}: type ${types[0].join(' or ')} became ${types[1].join(' or ')}`];
    }
    return [
      ...changed(`${place}: format`, released['format'], present['format']),
      ...(direction === 'request' ? narrowed(pair) : []),
      ...this.fields(pair),
      ...['items', 'additionalProperties'].flatMap((name) =>
        this.schemas({
          direction,
          place: `${place}[]`,
          released: objectIn(released, name),
          present: objectIn(present, name),
        }),
      ),
    ];
  }

  private fields({ direction, place, released, present }: Pair): string[] {
    const [before, after] = [objectIn(released, 'properties'), objectIn(present, 'properties')];
    const needs = [released['required'] ?? [], present['required'] ?? []] as [string[], string[]];
    const [least, most] = direction === 'request' ? needs : [needs[1], needs[0]];
    const problems = Object.keys(before).flatMap((name) =>
      name in after
        ? this.schemas({
            direction,
            place: `${place}.${name}`,
            released: objectIn(before, name),
            present: objectIn(after, name),
          })
        : [`${place}.${name} is removed`],
    );
    const word = direction === 'request' ? 'is required now' : 'may be absent now';
    const kept = most.filter((name) => direction === 'request' || name in after);
    const stricter = kept.filter((name) => !least.includes(name));
    return [...problems, ...stricter.map((name) => `${place}.${name} ${word}`)];
  }
}

/** Values that the released document accepts and the present one refuses. */
function narrowed({ place, released, present }: Pair): string[] {
  const [before, after] = [released['enum'], present['enum']] as (unknown[] | undefined)[];
  const lost = (before ?? []).filter((value) => after?.includes(value) === false);
  const limit = (names: string[], isStricter: (was: number, is: number) => boolean): string[] =>
    names.filter((name) => {
      const [was, is] = [released[name], present[name]] as (number | undefined)[];
      return is !== undefined && (was === undefined || isStricter(was, is));
    });
  const limits = [
    ...limit(UPPER_LIMITS, (was, is) => is < was),
    ...limit(LOWER_LIMITS, (was, is) => is > was),
  ];
  return [
    ...(before === undefined && after !== undefined ? [`${place}: has an enum now`] : []),
    ...lost.map((value) => `${place}: ${String(value)} is refused now`),
    ...limits.map((name) => `${place}: ${name} is stricter`),
    ...(present['pattern'] === undefined
      ? []
      : changed(`${place}: pattern`, released['pattern'], present['pattern'])),
  ];
}

function changed(place: string, released: unknown, present: unknown): string[] {
  const [was, is] = [JSON.stringify(released), JSON.stringify(present)];
  return was === is ? [] : [`${place} ${was} became ${is}`];
}

function objectIn(value: Json, name: string): Json {
  const member = value[name];
  return typeof member === 'object' && member !== null ? (member as Json) : {};
}

function schemaOf(body: Json): Json {
  return objectIn(objectIn(objectIn(body, 'content'), 'application/json'), 'schema');
}

function typesOf({ type = [] }: Json): string[] {
  return [type].flat() as string[];
}

function variantsOf({ anyOf, oneOf }: Json): readonly Json[] | null {
  return (anyOf ?? oneOf ?? null) as readonly Json[] | null;
}

function target(document: Json, value: Json): Json {
  const reference = value['$ref'];
  if (typeof reference !== 'string') return value;
  const found = reference
    .slice(2)
    .split('/')
    .reduce((place, name) => objectIn(place, name.replaceAll('~1', '/')), document);
  return target(document, found);
}
