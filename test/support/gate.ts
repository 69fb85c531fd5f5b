/** A promise that the test resolves by `open`. */
export function gate() {
  let open!: () => void;
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  return { open, isOpen };
}
