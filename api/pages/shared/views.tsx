import type { ComponentChildren } from 'preact';
import type { PublishedTestCard } from '../../../gateways/port.ts';
import { CardForm } from '../parts/card-form.tsx';
import type { MistypeText } from '../../../domain/payment-method.ts';
import { brandsOf, BrandMark, inGroups } from '../parts/brands.tsx';
import type { Language } from '../../../domain/language/language.ts';
import type { ReceiptLine } from '../../../domain/language/receipt-lines.ts';

export interface ListRow extends ReceiptLine {
  /** The amount due today, or paid: the largest text of the page. */
  readonly isSum?: boolean;
}

export interface Offer {
  readonly heading?: string;
  readonly action: string;
  /** A sentence that says what happens as soon as the payer has entered a card on the gateway's page. */
  readonly onceEntered: string;
  readonly lines: readonly ListRow[];
}

/** What a page says of the order for which a payer enters details or a card. */
export interface SaleText {
  readonly merchantName: string;
  readonly productName: string;
  readonly productDescription: string | null;
  readonly offer: Offer;
  /** The sentence by which the payer permits later charges of the card; null if there are none. */
  readonly consent: string | null;
}

export interface Sale extends SaleText {
  readonly language: Language;
  readonly cancelUrl: string | null;
  /** Null in live mode. Empty if the hosted card form, which alone accepts these cards, is not used. */
  readonly testCards: readonly PublishedTestCard[] | null;
}

/** `alert`: the text about the last card. `given`: the order's e-mail, and where the payer changes it. Null without. */
interface CardSectionProps {
  readonly sale: Sale;
  readonly alert: string | null;
  /** A form that pays with the card that is saved, in place of another card. Null without. */
  readonly again: ComponentChildren;
  readonly given: { readonly email: string; readonly changePath: string } | null;
}

/** The sale beside the form for a card. */
function CardSection(
  props: CardSectionProps & { hasWrongField?: boolean; children: ComponentChildren },
) {
  const { sale, alert, again, given, hasWrongField = false } = props;
  const { say } = sale.language;
  return (
    <Columns sale={sale} alert={alert !== null && <Alert text={alert} hasFocus={!hasWrongField} />}>
      {again}
      <h2>{again ? say('orAnotherCard') : (sale.offer.heading ?? say('payByCard'))}</h2>
      {given !== null && (
        <p class="soft small given">
          <bdi>{given.email}</bdi> <a href={given.changePath}>{say('changeEmail')}</a>
        </p>
      )}
      {props.children}
      {sale.consent !== null && <p class="soft small consent">{sale.consent}</p>}
      <LeaveLink sale={sale} />
    </Columns>
  );
}

export function CardPage(
  props: CardSectionProps & {
    tokeniserUrl: string;
    session: string;
    returnUrl: string;
    payerName: string;
    mistypes: readonly MistypeText[];
  },
) {
  const { sale, alert, again, given, payerName, mistypes } = props;
  const brands = brandsOf(sale.testCards ?? []);
  return (
    <CardSection {...{ sale, alert, again, given }} hasWrongField={mistypes.length > 0}>
      <CardForm
        language={sale.language}
        action={props.tokeniserUrl}
        context={{ session: props.session, return_url: props.returnUrl }}
        button={sale.offer.action}
        {...{ payerName, mistypes }}
        describedBy={alert === null || mistypes.length > 0 ? undefined : ALERT_ID}
      />
      {brands.length > 0 && <p class="soft small">{brands.join(' · ')}</p>}
    </CardSection>
  );
}

interface FormProps {
  readonly action: string;
  readonly formToken: string;
  readonly button: string;
}

/** A form of ours, with the hidden token that proves it. */
export function OwnForm(props: FormProps & { isQuiet?: boolean; children?: ComponentChildren }) {
  return (
    <form method="post" action={props.action}>
      <input type="hidden" name="form_token" value={props.formToken} />
      {props.children}
      <button type="submit" class={props.isQuiet ? 'quiet' : undefined}>
        {props.button}
      </button>
    </form>
  );
}

export function EntryPage(
  props: CardSectionProps & { action: string; formToken: string; company: string },
) {
  const { sale, alert, again, given, company, ...form } = props;
  const { say } = sale.language;
  return (
    <CardSection {...{ sale, alert, again, given }}>
      <p>
        {say('enterAtCompany', { company, name: sale.merchantName })} {sale.offer.onceEntered}
      </p>
      <OwnForm {...form} button={say('continueToCard')} />
      <p class="soft small">{say('securedBy', { company })}</p>
    </CardSection>
  );
}

export interface DetailsField {
  readonly name: keyof typeof DETAIL_INPUTS;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly value: string;
  readonly problem: string | null;
  readonly hasFocus: boolean;
}

const DETAIL_INPUTS = {
  name: { type: 'text', autocomplete: 'name', dir: 'auto' },
  email: { type: 'email', autocomplete: 'email', dir: 'ltr' },
  contactNumber: { type: 'tel', autocomplete: 'tel', dir: 'ltr' },
  reference: { type: 'text', autocomplete: 'off', dir: 'ltr' },
  endOn: { type: 'date' },
} as const;

/** `visit`: the id of the browser's visit to a link; absent on another page. */
export function DetailsPage(
  props: FormProps & { sale: Sale; fields: readonly DetailsField[]; visit?: string },
) {
  const { sale, fields, visit, ...form } = props;
  return (
    <Columns sale={sale}>
      {fields.length > 0 && <h2>{sale.language.say('yourDetails')}</h2>}
      <OwnForm {...form}>
        {visit !== undefined && <input type="hidden" name="visit" value={visit} />}
        {fields.map((field) => (
          <DetailsInput field={field} />
        ))}
      </OwnForm>
      <LeaveLink sale={sale} />
    </Columns>
  );
}

export function DetailsInput({ field }: { field: DetailsField }) {
  const { name, label, hint, value, problem, hasFocus } = field;
  const problemId = `${name}-problem`;
  const hintId = `${name}-hint`;
  const ids = [hint !== undefined && hintId, problem !== null && problemId].filter(Boolean);
  const described = {
    ...(ids.length > 0 && { 'aria-describedby': ids.join(' ') }),
    ...(problem !== null && { 'aria-invalid': true }),
  };
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
        required={name !== 'endOn'}
        autofocus={hasFocus}
        {...described}
      />
      {hint !== undefined && (
        <p class="soft small" id={hintId}>
          {hint}
        </p>
      )}
      {problem !== null && (
        <p class="problem" id={problemId}>
          {problem}
        </p>
      )}
    </>
  );
}

const ALERT_ID = 'declined';

/** Has the focus unless the page marks a wrong field. The browser also sets it without JavaScript. */
export function Alert({ text, hasFocus = true }: { text: string; hasFocus?: boolean }) {
  return (
    <p class="bad" id={ALERT_ID} role="alert" tabIndex={-1} autofocus={hasFocus}>
      {text}
    </p>
  );
}

/** Shows the sale beside the form on a wide screen, and above it on a narrow one. The alert is above both. */
function Columns(props: { sale: Sale; alert?: ComponentChildren; children: ComponentChildren }) {
  const { sale, alert, children } = props;
  return (
    <>
      {alert}
      <div class="columns">
        <div>
          <SaleSummary sale={sale} />
        </div>
        <div>
          <section class="card">{children}</section>
        </div>
      </div>
    </>
  );
}

function SaleSummary({ sale }: { sale: Sale }) {
  return (
    <>
      {sale.testCards !== null && <TestModeNote language={sale.language} cards={sale.testCards} />}
      <section class="card sale">
        <h1 dir="auto">{sale.productName}</h1>
        {sale.productDescription !== null && (
          <p class="soft" dir="auto">
            {sale.productDescription}
          </p>
        )}
        <RowList language={sale.language} rows={sale.offer.lines} />
      </section>
    </>
  );
}

export function RowList({ language, rows }: { language: Language; rows: readonly ListRow[] }) {
  return (
    <>
      <dl>
        {rows.map(({ label, text, brand, isSum }) => (
          <div class={isSum ? 'sum' : undefined}>
            <dt>{label}</dt>
            <dd>
              {brand !== undefined && <BrandMark brand={brand} />}
              {text}
            </dd>
          </div>
        ))}
      </dl>
      {rows.some(({ isDated }) => isDated) && (
        <p class="soft small">{language.say('datesInUtc')}</p>
      )}
    </>
  );
}

/** The list of cards is for programmers and names error codes, so it is in English. */
function TestModeNote(props: { language: Language; cards: readonly PublishedTestCard[] }) {
  const { language, cards } = props;
  if (cards.length === 0) return <p class="note">{language.say('testMode')}</p>;
  return (
    <details class="note">
      <summary>{language.say('testCards')}</summary>
      <p>{language.join(language.say('testMode'), language.say('testCardHint'))}</p>
      <table lang="en" dir="ltr">
        <tbody>
          {cards.map((card) => (
            <tr>
              <td>{inGroups(card.number)}</td>
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
      <a href={sale.cancelUrl}>
        {sale.language.say('cancelAndReturn', { name: sale.merchantName })}
      </a>
    </p>
  );
}

export function ConfirmPage(
  props: FormProps & { title: string; text: string; back?: { href: string; text: string } },
) {
  const { title, text, back, ...form } = props;
  return (
    <section class="card">
      <h1>{title}</h1>
      <p>{text}</p>
      <OwnForm {...form} />
      {back && (
        <p class="leave">
          <a href={back.href}>{back.text}</a>
        </p>
      )}
    </section>
  );
}

export function NoticePage(props: {
  language: Language;
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
      {props.rows && props.rows.length > 0 && (
        <RowList language={props.language} rows={props.rows} />
      )}
      {props.link && (
        <a class="button" href={props.link.href}>
          {props.link.text}
        </a>
      )}
    </section>
  );
}
