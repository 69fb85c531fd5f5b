import type { Language } from './language.ts';

export type CardField = 'number' | 'expiry' | 'cvc';

export interface CardFormContext {
  readonly session: string;
  readonly return_url: string;
  readonly locale: string;
  readonly merchant: string;
  readonly button: string;
}

export interface TypedFields {
  readonly name: string;
  readonly number: string;
  readonly expiry: string;
}

const NOTHING_TYPED: TypedFields = { name: '', number: '', expiry: '' };

/**
 * The card form, which posts to the gateway's tokeniser. The first field with a problem has the focus. `describedBy`:
 * the id of a text about the whole form. The CVC is never filled in.
 */
export function CardForm(props: {
  language: Language;
  action: string;
  context: CardFormContext;
  typed?: Partial<TypedFields>;
  problems?: Readonly<Partial<Record<CardField, string>>>;
  describedBy?: string | undefined;
}) {
  const { language, context, problems = {}, describedBy } = props;
  const typed = { ...NOTHING_TYPED, ...props.typed };
  const [first] = Object.keys(problems);
  const field = (name: CardField, placeholder?: string) => (
    <CardInput
      name={name}
      label={language.say(LABELS[name])}
      value={name === 'cvc' ? '' : typed[name]}
      problem={problems[name]}
      hasFocus={name === first}
      {...{ placeholder, describedBy }}
    />
  );
  return (
    <form method="post" action={props.action}>
      {Object.entries(context).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      <label for="name">{language.say('nameOnCard')}</label>
      <input
        id="name"
        name="name"
        dir="auto"
        autocomplete="cc-name"
        maxLength={255}
        value={typed.name}
        required
        aria-describedby={describedBy}
      />
      {field('number')}
      <div class="pair">
        <div>{field('expiry', language.say('expiryFormat'))}</div>
        <div>{field('cvc')}</div>
      </div>
      <button type="submit">{context.button}</button>
    </form>
  );
}

const LABELS = { number: 'cardNumber', expiry: 'expiry', cvc: 'cvc' } as const;

const INPUTS = {
  number: { autocomplete: 'cc-number', maxLength: 30 },
  expiry: { autocomplete: 'cc-exp', maxLength: 9 },
  cvc: { autocomplete: 'cc-csc', maxLength: 4 },
} as const;

function CardInput(props: {
  name: CardField;
  label: string;
  value: string;
  placeholder?: string | undefined;
  problem: string | undefined;
  hasFocus: boolean;
  describedBy: string | undefined;
}) {
  const { name, label, value, placeholder, problem, hasFocus, describedBy } = props;
  const problemId = problem === undefined ? undefined : `${name}-problem`;
  return (
    <>
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        dir="ltr"
        inputMode="numeric"
        {...INPUTS[name]}
        placeholder={placeholder}
        value={value}
        required
        autofocus={hasFocus}
        aria-invalid={problem === undefined ? undefined : true}
        aria-describedby={problemId ?? describedBy}
      />
      {problem !== undefined && (
        <p class="problem" id={problemId}>
          {problem}
        </p>
      )}
    </>
  );
}
