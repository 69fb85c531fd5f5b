import type { ComponentChildren } from 'preact';
import type { PublishedTestCard } from '../../../gateways/port.ts';
import { CardForm } from '../parts/card-form.tsx';
import type { Language } from '../parts/language.ts';

export interface ListRow {
  readonly label: string;
  readonly text: string;
}

export interface Offer {
  /** Heading of the card form. Default: "Pay by card". */
  readonly heading?: string;
  readonly action: string;
  /** A sentence that says what happens as soon as the payer has entered a card on the gateway's page. */
  readonly onceEntered: string;
  readonly lines: readonly ListRow[];
}

/** The content of a page on which a payer enters details or a card. */
export interface Sale {
  readonly language: Language;
  readonly merchantName: string;
  readonly productName: string;
  readonly productDescription: string | null;
  readonly offer: Offer;
  /** The sentence by which the payer permits later charges of the card; null if there are none. */
  readonly consent: string | null;
  readonly cancelUrl: string | null;
  /** Null in live mode. Empty if the hosted card form, which alone accepts these cards, is not used. */
  readonly testCards: readonly PublishedTestCard[] | null;
}

export interface HostedCardForm {
  readonly tokeniserUrl: string;
  readonly session: string;
  readonly returnUrl: string;
  readonly payerName: string;
  /** Text above the form about the last card; null without such a text. */
  readonly alert: string | null;
}

/** The card form, which posts to the gateway's tokeniser: no card number reaches this server. */
export function CardPage({ sale, form }: { sale: Sale; form: HostedCardForm }) {
  const { language, merchantName, offer } = sale;
  const context = {
    session: form.session,
    return_url: form.returnUrl,
    locale: language.locale,
    merchant: merchantName,
    button: offer.action,
  };
  return (
    <Columns summary={<SaleSummary sale={sale} />}>
      <section class="card">
        <CardHeading sale={sale} alert={form.alert} />
        <CardForm
          language={language}
          action={form.tokeniserUrl}
          context={context}
          typed={{ name: form.payerName }}
          describedBy={form.alert === null ? undefined : 'declined'}
        />
        <Consent sale={sale} />
        <LeaveLink sale={sale} />
      </section>
    </Columns>
  );
}

function CardHeading({ sale, alert }: { sale: Sale; alert: string | null }) {
  return (
    <>
      <h2>{sale.offer.heading ?? sale.language.say('payByCard')}</h2>
      {alert !== null && (
        <p class="bad" id="declined" role="alert">
          {alert}
        </p>
      )}
    </>
  );
}

export interface EntryForm {
  readonly action: string;
  readonly formToken: string;
  readonly company: string;
  /** Text above the form about the last card; null without such a text. */
  readonly alert: string | null;
}

/** The offer, with a button that leads to the gateway's page for the card. */
export function EntryPage({ sale, form }: { sale: Sale; form: EntryForm }) {
  const { language, merchantName: name, offer } = sale;
  return (
    <Columns summary={<SaleSummary sale={sale} />}>
      <section class="card">
        <CardHeading sale={sale} alert={form.alert} />
        <p>
          {language.say('enterAtCompany', { company: form.company, name })} {offer.onceEntered}
        </p>
        <form method="post" action={form.action}>
          <input type="hidden" name="form_token" value={form.formToken} />
          <button type="submit">{language.say('continueToCard')}</button>
        </form>
        <Consent sale={sale} />
        <LeaveLink sale={sale} />
      </section>
    </Columns>
  );
}

export interface DetailsField {
  readonly name: 'name' | 'email' | 'contactNumber';
  readonly label: string;
  readonly value: string;
  readonly problem: string | null;
  /** True for the first field with a problem. */
  readonly hasFocus: boolean;
}

const DETAIL_INPUTS = {
  name: { type: 'text', autocomplete: 'name', dir: 'auto' },
  email: { type: 'email', autocomplete: 'email', dir: 'ltr' },
  contactNumber: { type: 'tel', autocomplete: 'tel', dir: 'ltr' },
} as const;

export function DetailsPage(props: {
  sale: Sale;
  action: string;
  formToken: string;
  fields: readonly DetailsField[];
  button: string;
}) {
  return (
    <Columns summary={<SaleSummary sale={props.sale} />}>
      <section class="card">
        <h2>{props.sale.language.say('yourDetails')}</h2>
        <form method="post" action={props.action}>
          <input type="hidden" name="form_token" value={props.formToken} />
          {props.fields.map((field) => (
            <DetailsInput field={field} />
          ))}
          <button type="submit">{props.button}</button>
        </form>
        <LeaveLink sale={props.sale} />
      </section>
    </Columns>
  );
}

export function DetailsInput({ field }: { field: DetailsField }) {
  const { name, label, value, problem, hasFocus } = field;
  const problemId = `${name}-problem`;
  const described = problem === null ? {} : { 'aria-describedby': problemId, 'aria-invalid': true };
  return (
    <>
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        {...DETAIL_INPUTS[name]}
        // The browser counts UTF-16 units; 255 code points have at most 510.
        maxLength={510}
        value={value}
        required
        autofocus={hasFocus}
        {...described}
      />
      {problem !== null && (
        <p class="problem" id={problemId}>
          {problem}
        </p>
      )}
    </>
  );
}

/** Shows the summary beside the form on a wide screen, and above it on a narrow one. */
export function Columns(props: { summary: ComponentChildren; children: ComponentChildren }) {
  return (
    <div class="columns">
      <div>{props.summary}</div>
      <div>{props.children}</div>
    </div>
  );
}

export function SaleSummary({ sale }: { sale: Sale }) {
  return (
    <>
      {sale.testCards !== null && <TestModeNote language={sale.language} cards={sale.testCards} />}
      <section class="card">
        <p class="from" dir="auto">
          {sale.merchantName}
        </p>
        <h1 dir="auto">{sale.productName}</h1>
        {sale.productDescription !== null && (
          <p class="soft" dir="auto">
            {sale.productDescription}
          </p>
        )}
        <RowList rows={sale.offer.lines} />
      </section>
    </>
  );
}

function RowList({ rows }: { rows: readonly ListRow[] }) {
  return (
    <dl>
      {rows.map(({ label, text }) => (
        <div>
          <dt>{label}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

/**
 * Says that the page is in test mode, and lists the test cards of the hosted card form. The list is for
 * programmers and names error codes, so it is in English.
 */
function TestModeNote(props: { language: Language; cards: readonly PublishedTestCard[] }) {
  const { language, cards } = props;
  if (cards.length === 0) return <p class="note">{language.say('testMode')}</p>;
  return (
    <details class="note">
      <summary>{language.say('testCards')}</summary>
      <p>{language.say('testCardHint')}</p>
      <table lang="en" dir="ltr">
        <tbody>
          {cards.map((card) => (
            <tr>
              <td>{card.number.replace(/(\d{4})(?=\d)/g, '$1 ')}</td>
              <td>{card.label}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function Consent({ sale }: { sale: Sale }) {
  return sale.consent === null ? null : <p class="soft consent">{sale.consent}</p>;
}

function LeaveLink({ sale }: { sale: Sale }) {
  if (sale.cancelUrl === null) return null;
  return (
    <p class="leave">
      <a href={sale.cancelUrl}>
        {sale.language.say('cancelAndReturn', { name: sale.merchantName })}
      </a>
    </p>
  );
}

/** A text with a button that sends a form without fields. */
export function ConfirmPage(props: {
  title: string;
  text: string;
  action: string;
  formToken: string;
  button: string;
}) {
  return (
    <section class="card">
      <h1>{props.title}</h1>
      <p>{props.text}</p>
      <form method="post" action={props.action}>
        <input type="hidden" name="form_token" value={props.formToken} />
        <button type="submit">{props.button}</button>
      </form>
    </section>
  );
}

/** Texts with at most one link. `rows`: the rows of a receipt; absent or empty without one. */
export function NoticePage(props: {
  title: string;
  texts: readonly string[];
  rows?: readonly ListRow[] | undefined;
  link?: { readonly href: string; readonly text: string } | undefined;
}) {
  return (
    <section class="card">
      <h1>{props.title}</h1>
      {props.texts.map((text) => (
        <p>{text}</p>
      ))}
      {props.rows && props.rows.length > 0 && <RowList rows={props.rows} />}
      {props.link && (
        <a class="button" href={props.link.href}>
          {props.link.text}
        </a>
      )}
    </section>
  );
}
