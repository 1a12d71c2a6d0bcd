-- name: CreateOrder :exec
INSERT INTO orders (id, customer, cents) VALUES ($1, $2, $3);
