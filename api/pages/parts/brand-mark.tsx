/** Own shapes and colours, which are no logos: background and white path on a card of 24 × 16. */
const MARKS: Readonly<Record<string, readonly [colour: string, path: string]>> = {
  visa: ['#1f4a9c', 'M7 4h3l2 5 2-5h3l-4 8h-2z'],
  mastercard: ['#a8421c', 'M12 3l5 5-5 5-5-5z'],
  amex: ['#0f6c86', 'M8 4h8v8H8z'],
  diners: ['#44526b', 'M12 3a5 5 0 0 1 0 10z'],
  discover: ['#8a5a00', 'M9 3l8 5-8 5z'],
  jcb: ['#2c6b3f', 'M6 5h12v2H6zM6 9h12v2H6z'],
  unionpay: ['#7a2548', 'M11 3h2v4h4v2h-4v4h-2V9H7V7h4z'],
};

/** A small picture beside the name of a card's brand; nothing for an unknown brand. */
export function BrandMark({ brand }: { brand: string }) {
  const [colour, path] = MARKS[brand] ?? [];
  if (path === undefined) return null;
  return (
    <svg class="mark" viewBox="0 0 24 16" aria-hidden="true">
      <rect width="24" height="16" rx="3" fill={colour} />
      <path d={path} fill="#fff" />
    </svg>
  );
}
