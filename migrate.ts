import { migrate } from './db/migrate.ts';
import { loadMigrateConfig } from './runtime/config.ts';
import { createLogger } from './runtime/logger.ts';

const config = loadMigrateConfig();
const logger = createLogger({ name: 'migrate', level: config.logLevel });

await migrate(config.databaseUrl, {
  applicationName: 'perennial-migrate',
  report: (line) => logger.warn(line),
});
logger.info('the database has the schema of this release');
