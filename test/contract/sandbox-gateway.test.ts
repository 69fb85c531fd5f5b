import { describeGatewayContract } from './gateway.contract.ts';
import { startSandboxHarness } from './gateway-sandbox-harness.ts';

describeGatewayContract('the sandbox', startSandboxHarness, { canFail: true });
