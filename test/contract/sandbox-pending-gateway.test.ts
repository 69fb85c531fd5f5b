import { describeGatewayContract } from './gateway.contract.ts';
import { startPendingSandboxHarness } from './gateway-sandbox-harness.ts';

describeGatewayContract('the sandbox that decides later', startPendingSandboxHarness, {
  canFail: true,
});
