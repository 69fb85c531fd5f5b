/** Creates the promise `isOpen`, which resolves when the test calls `open`. */
export function gate() {
  let open!: () => void;
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  return { open, isOpen };
}
