/**
 * Writes domain/currency-table.ts from the ISO 4217 data below and a file of reference rates:
 *
 *   node --import tsx tools/scripts/generate-currencies.ts <rates.json>
 *
 * The rates file has the shape `{ "date": "2026-09-29", "usd": { "eur": 0.88, … } }`: the price of one US
 * dollar, by lower-case code. The file is `v1/currencies/usd.min.json` of the npm package
 * `@fawazahmed0/currency-api` (CC0), unpacked by hand. The package is not a dependency. Format the result
 * with `npx oxfmt domain/currency-table.ts`.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** Currencies in use: code, digits after the decimal point by ISO 4217, English name. */
const ACTIVE = `
AED 2 UAE dirham
AFN 2 Afghan afghani
ALL 2 Albanian lek
AMD 2 Armenian dram
AOA 2 Angolan kwanza
ARS 2 Argentine peso
AUD 2 Australian dollar
AWG 2 Aruban florin
AZN 2 Azerbaijani manat
BAM 2 Bosnian convertible mark
BBD 2 Barbadian dollar
BDT 2 Bangladeshi taka
BHD 3 Bahraini dinar
BIF 0 Burundian franc
BMD 2 Bermudian dollar
BND 2 Brunei dollar
BOB 2 Bolivian boliviano
BRL 2 Brazilian real
BSD 2 Bahamian dollar
BTN 2 Bhutanese ngultrum
BWP 2 Botswana pula
BYN 2 Belarusian ruble
BZD 2 Belize dollar
CAD 2 Canadian dollar
CDF 2 Congolese franc
CHF 2 Swiss franc
CLP 0 Chilean peso
CNY 2 Chinese yuan
COP 2 Colombian peso
CRC 2 Costa Rican colon
CUP 2 Cuban peso
CVE 2 Cape Verdean escudo
CZK 2 Czech koruna
DJF 0 Djiboutian franc
DKK 2 Danish krone
DOP 2 Dominican peso
DZD 2 Algerian dinar
EGP 2 Egyptian pound
ERN 2 Eritrean nakfa
ETB 2 Ethiopian birr
EUR 2 Euro
FJD 2 Fijian dollar
FKP 2 Falkland Islands pound
GBP 2 Pound sterling
GEL 2 Georgian lari
GHS 2 Ghanaian cedi
GIP 2 Gibraltar pound
GMD 2 Gambian dalasi
GNF 0 Guinean franc
GTQ 2 Guatemalan quetzal
GYD 2 Guyanese dollar
HKD 2 Hong Kong dollar
HNL 2 Honduran lempira
HTG 2 Haitian gourde
HUF 2 Hungarian forint
IDR 2 Indonesian rupiah
ILS 2 Israeli new shekel
INR 2 Indian rupee
IQD 3 Iraqi dinar
IRR 2 Iranian rial
ISK 0 Icelandic krona
JMD 2 Jamaican dollar
JOD 3 Jordanian dinar
JPY 0 Japanese yen
KES 2 Kenyan shilling
KGS 2 Kyrgyz som
KHR 2 Cambodian riel
KMF 0 Comorian franc
KPW 2 North Korean won
KRW 0 South Korean won
KWD 3 Kuwaiti dinar
KYD 2 Cayman Islands dollar
KZT 2 Kazakh tenge
LAK 2 Lao kip
LBP 2 Lebanese pound
LKR 2 Sri Lankan rupee
LRD 2 Liberian dollar
LSL 2 Lesotho loti
LYD 3 Libyan dinar
MAD 2 Moroccan dirham
MDL 2 Moldovan leu
MGA 2 Malagasy ariary
MKD 2 Macedonian denar
MMK 2 Myanmar kyat
MNT 2 Mongolian tugrik
MOP 2 Macanese pataca
MRU 2 Mauritanian ouguiya
MUR 2 Mauritian rupee
MVR 2 Maldivian rufiyaa
MWK 2 Malawian kwacha
MXN 2 Mexican peso
MYR 2 Malaysian ringgit
MZN 2 Mozambican metical
NAD 2 Namibian dollar
NGN 2 Nigerian naira
NIO 2 Nicaraguan cordoba
NOK 2 Norwegian krone
NPR 2 Nepalese rupee
NZD 2 New Zealand dollar
OMR 3 Omani rial
PAB 2 Panamanian balboa
PEN 2 Peruvian sol
PGK 2 Papua New Guinean kina
PHP 2 Philippine peso
PKR 2 Pakistani rupee
PLN 2 Polish zloty
PYG 0 Paraguayan guarani
QAR 2 Qatari riyal
RON 2 Romanian leu
RSD 2 Serbian dinar
RUB 2 Russian ruble
RWF 0 Rwandan franc
SAR 2 Saudi riyal
SBD 2 Solomon Islands dollar
SCR 2 Seychellois rupee
SDG 2 Sudanese pound
SEK 2 Swedish krona
SGD 2 Singapore dollar
SHP 2 Saint Helena pound
SLE 2 Sierra Leonean leone
SOS 2 Somali shilling
SRD 2 Surinamese dollar
SSP 2 South Sudanese pound
STN 2 Sao Tome and Principe dobra
SVC 2 Salvadoran colon
SYP 2 Syrian pound
SZL 2 Swazi lilangeni
THB 2 Thai baht
TJS 2 Tajikistani somoni
TMT 2 Turkmenistani manat
TND 3 Tunisian dinar
TOP 2 Tongan paanga
TRY 2 Turkish lira
TTD 2 Trinidad and Tobago dollar
TWD 2 New Taiwan dollar
TZS 2 Tanzanian shilling
UAH 2 Ukrainian hryvnia
UGX 0 Ugandan shilling
USD 2 US dollar
UYU 2 Uruguayan peso
UZS 2 Uzbekistani som
VED 2 Venezuelan digital bolivar
VES 2 Venezuelan sovereign bolivar
VND 0 Vietnamese dong
VUV 0 Vanuatu vatu
WST 2 Samoan tala
XAF 0 Central African CFA franc
XCD 2 East Caribbean dollar
XCG 2 Caribbean guilder
XOF 0 West African CFA franc
XPF 0 CFP franc
YER 2 Yemeni rial
ZAR 2 South African rand
ZMW 2 Zambian kwacha
ZWG 2 Zimbabwe gold
`;

/** ISO 4217 units of account, which are not used for payments: code, digits, name. */
const FUNDS = `
BOV 2 Bolivian mvdol
CHE 2 WIR euro
CHW 2 WIR franc
CLF 4 Chilean unit of account
COU 2 Colombian real value unit
MXV 2 Mexican investment unit
USN 2 US dollar of the next day
UYI 0 Uruguayan indexed unit
UYW 4 Uruguayan nominal wage unit
`;

const RETIRED = `
ANG 2 Netherlands Antillean guilder
BGN 2 Bulgarian lev
BYR 0 Belarusian ruble until 2016
CUC 2 Cuban convertible peso
EEK 2 Estonian kroon
HRK 2 Croatian kuna
LTL 2 Lithuanian litas
LVL 2 Latvian lats
MRO 2 Mauritanian ouguiya until 2017
SLL 2 Sierra Leonean leone until 2023
STD 2 Sao Tome and Principe dobra until 2017
VEF 2 Venezuelan bolivar until 2018
ZMK 2 Zambian kwacha until 2012
ZWL 2 Zimbabwean dollar until 2024
`;

const DEFAULT_MAXIMUM = 99_999_999n;

/** If a maximum is worth less than this amount in USD, nines are appended to the maximum. */
const MAXIMUM_WORTH_USD = 10_000n;

const RATE_DIGITS = 12;

function scaledRate(code: string, rates: Record<string, unknown>): bigint {
  const rate = rates[code.toLowerCase()];
  if (typeof rate !== 'number' || !(rate > 0)) throw new Error(`No rate for ${code}`);
  return BigInt(rate.toFixed(RATE_DIGITS).replace('.', ''));
}

function activeRow(line: string, rates: Record<string, unknown>): string {
  const { code, exponent, name } = parse(line);
  const dollar = scaledRate(code, rates) * 10n ** BigInt(exponent);
  const minimum = dollar / 10n ** BigInt(RATE_DIGITS) + 1n;
  const wanted = (MAXIMUM_WORTH_USD * dollar) / 10n ** BigInt(RATE_DIGITS);
  let maximum = DEFAULT_MAXIMUM;
  while (maximum < wanted) maximum = maximum * 10n + 9n;
  if (maximum > BigInt(Number.MAX_SAFE_INTEGER)) throw new Error(`${code} needs unsafe integers`);
  return `['${code}', '${name}', ${exponent}, ${grouped(minimum)}, ${grouped(maximum)}],`;
}

function inactiveRow(line: string): string {
  const { code, exponent, name } = parse(line);
  return `['${code}', '${name}', ${exponent}],`;
}

function parse(line: string): { code: string; exponent: number; name: string } {
  return { code: line.slice(0, 3), exponent: Number(line.slice(4, 5)), name: line.slice(6) };
}

function lines(text: string): string[] {
  return text.trim().split('\n');
}

function grouped(value: bigint): string {
  return value.toString().replaceAll(/\B(?=(\d{3})+$)/g, '_');
}

const [ratesPath] = process.argv.slice(2);
if (ratesPath === undefined) throw new Error('Usage: generate-currencies.ts <rates.json>');
const { date, usd } = JSON.parse(readFileSync(ratesPath, 'utf8')) as {
  date: string;
  usd: Record<string, unknown>;
};
if (!/^\d{4}-\d\d-\d\d$/.test(date)) throw new Error(`Not a date: ${date}`);

const inactive = [...lines(FUNDS), ...lines(RETIRED)].map(inactiveRow).toSorted();

writeFileSync(
  new URL('../../domain/currency-table.ts', import.meta.url),
  `// Generated by tools/scripts/generate-currencies.ts: change that file and run it again.

/** Date of the exchange rates from which the minimums are computed. */
export const TABLE_DATE = '${date}';

/**
 * Currencies a merchant may charge in: code, English name, exponent, minimum, maximum. Amounts are
 * minor units. A minimum is the least amount worth more than 1 USD. The maximum is 99,999,999. If
 * that is worth less than ${MAXIMUM_WORTH_USD.toLocaleString('en-US')} USD, nines are appended until it is worth at least ${MAXIMUM_WORTH_USD.toLocaleString('en-US')} USD.
 */
export const ACTIVE_ROWS: readonly (readonly [string, string, number, number, number])[] = [
  ${lines(ACTIVE)
    .map((line) => activeRow(line, usd))
    .join('\n  ')}
];

/**
 * Codes that cannot be charged: withdrawn currencies and units of account. Each row has code, English
 * name and exponent.
 */
export const INACTIVE_ROWS: readonly (readonly [string, string, number])[] = [
  ${inactive.join('\n  ')}
];
`,
);
