/** Walks over all rows of a keyset order. */

const pageSize = 500

/** Page by page, until one is not full; `read` gives the page behind an id, null = the first. */
export async function* pagesOf<T extends { readonly id: string }>(
  read: (after: string | null, limit: number) => Promise<readonly T[]>,
): AsyncGenerator<readonly T[]> {
  for (let after: string | null = null; ;) {
    const page: readonly T[] = await read(after, pageSize)
    yield page
    after = page.at(-1)?.id ?? null
    if (page.length < pageSize) return
  }
}
