-- Creates the roles and databases of the product and of Temporal, none of them a superuser. Each role has its share of
-- the connections of docker-compose.yml, so that one cannot take those of the other:
-- perennial: 21 of each API and worker process, 8 of the sandbox gateway, a few of jobs and commands: six processes.
-- temporal: 15 of each of its four services, and those of the schema tool.
\getenv perennial PERENNIAL_DB_PASSWORD
\getenv temporal TEMPORAL_DB_PASSWORD
create role perennial login password :'perennial' connection limit 145;
create role temporal login password :'temporal' connection limit 70;
-- The image's default compares text by a language, which is slower, and an update of the image can change the order.
create database perennial owner perennial template template0 locale 'C';
create database temporal owner temporal template template0 locale 'C';
create database temporal_visibility owner temporal template template0 locale 'C';
revoke connect on database perennial, temporal, temporal_visibility from public;
