-- The id of the key that a secret is sealed with; '': not known.
ALTER TABLE surehook_secrets ADD COLUMN sealing_key TEXT NOT NULL DEFAULT '';
CREATE INDEX surehook_secrets_key ON surehook_secrets (sealing_key, subscriber);
