-- By these, what is past its time is found without looking at what must stay.
CREATE INDEX surehook_ended_at ON surehook_ended (status, ended_at);
CREATE INDEX surehook_keys_event ON surehook_keys (event);
CREATE INDEX surehook_notices_read ON surehook_notices (acknowledged_at) WHERE acknowledged_at > 0;
