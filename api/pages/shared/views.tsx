import type { PublishedTestCard } from '../../../gateways/port.ts';

/** One line of the offer that the payer agrees to. */
export interface OfferLine {
  readonly label: string;
  readonly text: string;
}

export interface Offer {
  /** Heading of the card form. Default: "Pay by card". */
  readonly heading?: string;
  /** Text of the button. */
  readonly action: string;
  /** A sentence that says what happens as soon as the payer has entered a card on the gateway's page. */
  readonly onceEntered: string;
  readonly lines: readonly OfferLine[];
}

/** The product, the merchant, the offer, and the URL for leaving without paying. */
export interface Sale {
  readonly merchantName: string;
  readonly productName: string;
  readonly productDescription: string | null;
  readonly offer: Offer;
  /** Null when the page has no cancel link. */
  readonly cancelUrl: string | null;
  /** Null in live mode. Empty if the gateway's own page lists its test cards. */
  readonly testCards: readonly PublishedTestCard[] | null;
}

export interface CardForm {
  readonly tokeniserUrl: string;
  readonly session: string;
  readonly returnUrl: string;
  readonly payerName: string;
  /** Text above the form about the last card; null without such a text. */
  readonly alert: string | null;
}

/** The card form, which posts to the gateway's tokeniser: no card number reaches this server. */
export function CardPage({ sale, form }: { sale: Sale; form: CardForm }) {
  const described = form.alert === null ? {} : { 'aria-describedby': 'declined' };
  return (
    <>
      <SaleSummary sale={sale} />
      <section class="card">
        <h2>{sale.offer.heading ?? 'Pay by card'}</h2>
        {form.alert !== null && (
          <p class="bad" id="declined" role="alert">
            {form.alert}
          </p>
        )}
        <form method="post" action={form.tokeniserUrl}>
          <input type="hidden" name="session" value={form.session} />
          <input type="hidden" name="return_url" value={form.returnUrl} />
          <label for="name">Name on card</label>
          <input
            id="name"
            name="name"
            autocomplete="cc-name"
            maxLength={255}
            value={form.payerName}
            required
            {...described}
          />
          <label for="number">Card number</label>
          <input
            id="number"
            name="number"
            autocomplete="cc-number"
            inputMode="numeric"
            maxLength={30}
            required
            {...described}
          />
          <div class="pair">
            <div>
              <label for="expiry">Expiry</label>
              <input
                id="expiry"
                name="expiry"
                autocomplete="cc-exp"
                inputMode="numeric"
                placeholder="MM / YY"
                maxLength={9}
                required
                {...described}
              />
            </div>
            <div>
              <label for="cvc">CVC</label>
              <input
                id="cvc"
                name="cvc"
                autocomplete="cc-csc"
                inputMode="numeric"
                maxLength={4}
                required
                {...described}
              />
            </div>
          </div>
          <button type="submit">{sale.offer.action}</button>
        </form>
        <LeaveLink sale={sale} />
      </section>
    </>
  );
}

export interface EntryForm {
  readonly action: string;
  readonly formToken: string;
  /** The company on whose page the payer enters the card. */
  readonly company: string;
  /** Text above the form about the last card; null without such a text. */
  readonly alert: string | null;
}

/** The offer, with a button that leads to the gateway's page for the card. */
export function EntryPage({ sale, form }: { sale: Sale; form: EntryForm }) {
  return (
    <>
      <SaleSummary sale={sale} />
      <section class="card">
        <h2>{sale.offer.heading ?? 'Pay by card'}</h2>
        {form.alert !== null && (
          <p class="bad" id="declined" role="alert">
            {form.alert}
          </p>
        )}
        <p>
          You enter your card on a page of {form.company}, which processes cards for{' '}
          {sale.merchantName}. {sale.offer.onceEntered}
        </p>
        <form method="post" action={form.action}>
          <input type="hidden" name="form_token" value={form.formToken} />
          <button type="submit">Continue to enter your card</button>
        </form>
        <LeaveLink sale={sale} />
      </section>
    </>
  );
}

export interface DetailsField {
  readonly name: 'name' | 'email' | 'contactNumber';
  readonly label: string;
  readonly value: string;
  readonly problem: string | null;
}

const DETAIL_INPUTS = {
  name: { type: 'text', autocomplete: 'name' },
  email: { type: 'email', autocomplete: 'email' },
  contactNumber: { type: 'tel', autocomplete: 'tel' },
} as const;

/** The form for the payer's details that the merchant did not send. Rule: D-11. */
export function DetailsPage(props: {
  sale: Sale;
  action: string;
  formToken: string;
  fields: readonly DetailsField[];
  /** Text of the button. Default: "Continue to payment". */
  button?: string;
}) {
  return (
    <>
      <SaleSummary sale={props.sale} />
      <section class="card">
        <h2>Your details</h2>
        <form method="post" action={props.action}>
          <input type="hidden" name="form_token" value={props.formToken} />
          {props.fields.map((field) => (
            <DetailsInput field={field} />
          ))}
          <button type="submit">{props.button ?? 'Continue to payment'}</button>
        </form>
        <LeaveLink sale={props.sale} />
      </section>
    </>
  );
}

export function DetailsInput({ field }: { field: DetailsField }) {
  const { name, label, value, problem } = field;
  const problemId = `${name}-problem`;
  const described = problem === null ? {} : { 'aria-describedby': problemId, 'aria-invalid': true };
  return (
    <>
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        {...DETAIL_INPUTS[name]}
        maxLength={255}
        value={value}
        required
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

/** The product and the offer that the payer agrees to. */
export function SaleSummary({ sale }: { sale: Sale }) {
  return (
    <>
      {sale.testCards !== null && <TestModeNote cards={sale.testCards} />}
      <section class="card">
        <p class="from">{sale.merchantName}</p>
        <h1>{sale.productName}</h1>
        {sale.productDescription !== null && <p class="soft">{sale.productDescription}</p>}
        <dl>
          {sale.offer.lines.map(({ label, text }) => (
            <>
              <dt>{label}</dt>
              <dd>{text}</dd>
            </>
          ))}
        </dl>
      </section>
    </>
  );
}

/** Says that the page is in test mode, and lists the test cards of the hosted card form. Rule: D-61. */
function TestModeNote({ cards }: { cards: readonly PublishedTestCard[] }) {
  if (cards.length === 0) return <p class="note">Test mode: no money moves.</p>;
  return (
    <details class="note">
      <summary>Test mode: no money moves. Test cards</summary>
      <p>Any expiry in the future, any name, a CVC of 3 digits (4 on American Express).</p>
      <table>
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

function LeaveLink({ sale }: { sale: Sale }) {
  if (sale.cancelUrl === null) return null;
  return (
    <p class="leave">
      <a href={sale.cancelUrl}>Cancel and return to {sale.merchantName}</a>
    </p>
  );
}

/** A text with a button that sends a form without fields. */
export function ConfirmPage(props: {
  title: string;
  text: string;
  action: string;
  formToken: string;
  /** Text of the button. Default: "Continue". */
  button?: string;
}) {
  return (
    <section class="card">
      <h1>{props.title}</h1>
      <p>{props.text}</p>
      <form method="post" action={props.action}>
        <input type="hidden" name="form_token" value={props.formToken} />
        <button type="submit">{props.button ?? 'Continue'}</button>
      </form>
    </section>
  );
}

/** Texts with at most one link. */
export function NoticePage(props: {
  title: string;
  texts: readonly string[];
  link?: { readonly href: string; readonly text: string } | undefined;
}) {
  return (
    <section class="card">
      <h1>{props.title}</h1>
      {props.texts.map((text) => (
        <p>{text}</p>
      ))}
      {props.link && (
        <a class="button" href={props.link.href}>
          {props.link.text}
        </a>
      )}
    </section>
  );
}
