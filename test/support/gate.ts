/** Something to wait for until the test lets it happen. */
export function gate() {
  let open!: () => void;
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  return { open, isOpen };
}
