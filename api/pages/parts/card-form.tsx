import { MISTYPES } from '../../../domain/payment-method.ts';
import type { CardField, MistypeText } from '../../../domain/payment-method.ts';
import type { Language } from '../../../domain/language/language.ts';

/** Reads the typing errors in the query of a URL, in the order of the fields. Leaves out unknown ones. */
export function mistypesIn(querystring: string): MistypeText[] {
  const given = (new URLSearchParams(querystring).get('mistyped') ?? '').split(',');
  return TYPING_ERRORS.filter((text) => given.includes(text));
}

const TYPING_ERRORS = Object.keys(MISTYPES) as MistypeText[];

/**
 * The card form, which posts to the gateway's tokeniser. The first field with a problem has the focus. `describedBy`:
 * the id of a text about the whole form. Number, expiry and CVC are never filled in: they go to the gateway only.
 */
export function CardForm(props: {
  language: Language;
  action: string;
  context: { readonly session: string; readonly return_url: string };
  payerName: string;
  button: string;
  mistypes: readonly MistypeText[];
  describedBy?: string | undefined;
}) {
  const { language, context, mistypes, describedBy } = props;
  const field = (name: CardField, placeholder?: string) => (
    <CardInput
      name={name}
      label={language.say(LABELS[name])}
      mistype={mistypes.find((text) => MISTYPES[text] === name)}
      hasFocus={mistypes[0] !== undefined && MISTYPES[mistypes[0]] === name}
      {...{ language, placeholder, describedBy }}
    />
  );
  return (
    <form method="post" action={props.action} data-texts={JSON.stringify(scriptTexts(language))}>
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
        value={props.payerName}
        required
        aria-describedby={describedBy}
      />
      {field('number')}
      <div class="pair">
        <div>{field('expiry', language.say('expiryFormat'))}</div>
        <div>{field('cvc')}</div>
      </div>
      <button type="submit">{props.button}</button>
    </form>
  );
}

/** The texts by which the script marks a wrong field before the form is sent. */
function scriptTexts({ say }: Language): Record<string, string> {
  const title = say('errorTitle', { title: '' });
  return { title, ...Object.fromEntries(TYPING_ERRORS.map((text) => [text, say(text)])) };
}

const LABELS = { number: 'cardNumber', expiry: 'expiry', cvc: 'cvc' } as const;

const INPUTS = {
  number: { autocomplete: 'cc-number', maxLength: 30 },
  expiry: { autocomplete: 'cc-exp', maxLength: 9 },
  cvc: { autocomplete: 'cc-csc', maxLength: 4 },
} as const;

function CardInput(props: {
  language: Language;
  name: CardField;
  label: string;
  placeholder?: string | undefined;
  mistype: MistypeText | undefined;
  hasFocus: boolean;
  describedBy: string | undefined;
}) {
  const { language, name, label, placeholder, mistype, hasFocus, describedBy } = props;
  const problem = mistype && language.say(mistype);
  const problemId = `${name}-problem`;
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
        required
        autofocus={hasFocus}
        aria-invalid={problem === undefined ? undefined : true}
        aria-describedby={problem === undefined ? describedBy : problemId}
      />
      <p class="problem" id={problemId} hidden={problem === undefined}>
        {problem}
      </p>
    </>
  );
}
