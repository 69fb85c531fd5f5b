import { findMerchant } from '../../../db/repositories/merchants/merchants.ts';
import { isId } from '../../../domain/ids.ts';
import { pathParam } from '../../http/request.ts';
import type { Context, PageMerchant } from '../../http/request.ts';
import { unknownPage } from './card-page.tsx';
import type { PageRoutes } from './card-page-kind.ts';
import { languageFor, sendPage } from './page.tsx';

/** Returns a function that finds the merchant in the path of a page without login, or answers and returns null. */
export function merchantOpener(
  { deps, limits }: Pick<PageRoutes, 'deps' | 'limits'>,
  hasPage: (merchantId: string) => Promise<boolean> = async () => true,
) {
  return async (ctx: Context): Promise<PageMerchant | null> => {
    const id = pathParam(ctx, 'merchant');
    const merchant = await limits.lookUp(ctx, async () =>
      isId('mer', id) && (await hasPage(id)) ? findMerchant(deps.db, id) : null,
    );
    if (merchant === null) sendPage(deps, ctx, unknownPage(languageFor(ctx)));
    else ctx.state.pageMerchant = merchant;
    return merchant;
  };
}
