CREATE TABLE customers (id text PRIMARY KEY);
CREATE TABLE orders (
	id text PRIMARY KEY,
	customer text NOT NULL REFERENCES customers DEFERRABLE INITIALLY DEFERRED,
	cents bigint NOT NULL
);
