/** True if `path` has the form of `pattern`, in which `*` stands for one segment: `/v1/charges/*`. */
export function matches(pattern: string, path: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/]+')}$`).test(path);
}
