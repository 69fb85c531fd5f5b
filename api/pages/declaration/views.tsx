import type { DeclarationKind } from '../../../domain/declaration.ts';
import { declaredLines } from '../../../domain/language/declared-lines.ts';
import type { Language } from '../../../domain/language/language.ts';
import { FIXED_WORDS, needsSummary } from '../../../domain/language/fixed-words.ts';
import { DECLARED, declaredIn } from './form.ts';
import type { DeclarationForm } from './form.ts';
import { DetailsInput, OwnForm, RowList } from '../shared/views.tsx';

/** `action`: the form's own path. `visit`: the random id of the form, so that a second click declares once. */
export interface FormProps {
  readonly language: Language;
  readonly kind: DeclarationKind;
  readonly merchantName: string;
  readonly action: string;
  readonly formToken: string;
  readonly visit: string;
  readonly form: DeclarationForm;
}

export function declarationTitle({ say }: Language, kind: DeclarationKind, name: string): string {
  return kind === 'cancellation' ? say('cancelContract', { name }) : say('withdrawHere', { name });
}

const LABELS = { name: 'name', email: 'email', reference: 'contractNumber' } as const;

export function DeclarationPage(props: FormProps) {
  const { language, kind, merchantName: name, action, formToken, visit, form } = props;
  const { say } = language;
  const { fields, endOn } = form;
  const wrong = DECLARED.find((field) => fields.get(field)?.problem);
  return (
    <section class="card">
      <h1>{declarationTitle(language, kind, name)}</h1>
      <p>{say('noAccountNeeded', { name })}</p>
      <OwnForm
        action={action}
        formToken={formToken}
        button={
          needsSummary(language.locale, kind)
            ? say('continue')
            : FIXED_WORDS[language.locale][kind].confirm
        }
      >
        <input type="hidden" name="visit" value={visit} />
        {DECLARED.map((field) => {
          const { value = '', problem = null } = fields.get(field) ?? {};
          return (
            <DetailsInput
              field={{
                name: field,
                label: say(LABELS[field]),
                hint: field === 'reference' ? say('contractNumberHint') : undefined,
                value,
                problem: problem && say(problem),
                hasFocus: field === wrong,
              }}
            />
          );
        })}
        {kind === 'cancellation' && <Kind language={language} form={form} />}
        {kind === 'cancellation' && (
          <DetailsInput
            field={{
              name: 'endOn',
              label: say('endOn'),
              hint: say('endOnHint'),
              value: endOn.value,
              problem: endOn.problem && say(endOn.problem),
              hasFocus: false,
            }}
          />
        )}
      </OwnForm>
    </section>
  );
}

function Kind({ language: { say }, form }: { language: Language; form: DeclarationForm }) {
  const { isForCause, reason } = form;
  const isWrong = reason.problem !== null;
  return (
    <fieldset>
      <legend>{say('cancellationKind')}</legend>
      <label class="choice">
        <input type="radio" name="kind" value="ordinary" checked={!isForCause} />
        {say('ordinaryCancellation')}
      </label>
      <label class="choice">
        <input type="radio" name="kind" value="cause" checked={isForCause} />
        {say('forCause')}
      </label>
      <label for="reason">{say('cause')}</label>
      <textarea
        id="reason"
        name="reason"
        rows={3}
        maxLength={1000}
        dir="auto"
        aria-invalid={isWrong}
        aria-describedby={isWrong ? 'reason-problem' : undefined}
      >
        {reason.value}
      </textarea>
      {reason.problem !== null && (
        <p class="problem" id="reason-problem">
          {say(reason.problem)}
        </p>
      )}
    </fieldset>
  );
}

/** The summary before the button that declares, with a button back to the form. */
export function SummaryPage(props: FormProps) {
  const { language, kind, action, formToken, visit, form } = props;
  const { say, locale } = language;
  const declared = declaredIn(form);
  const hidden = {
    visit,
    name: declared.name,
    email: declared.email,
    reference: declared.reference,
    kind: form.isForCause ? 'cause' : 'ordinary',
    reason: declared.reason ?? '',
    endOn: declared.endOn ?? '',
    checked: 'yes',
  };
  return (
    <section class="card">
      <h1>{say('checkDeclaration')}</h1>
      <RowList language={language} rows={declaredLines(language, { kind, ...declared })} />
      <OwnForm action={action} formToken={formToken} button={FIXED_WORDS[locale][kind].confirm}>
        {Object.entries(hidden).map(([name, value]) => (
          <input type="hidden" name={name} value={value} />
        ))}
        <button type="submit" name="change" value="yes" class="quiet">
          {say('change')}
        </button>
      </OwnForm>
    </section>
  );
}
