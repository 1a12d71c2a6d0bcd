// Package order has what all recipes for publishing share: an order, its table, and the
// event that tells of it.
package order

import "github.com/surehook/surehook/sender"

// Order is a row of the table orders, and the data of its events.
type Order struct {
	ID       string `json:"id"       gorm:"primaryKey" bun:",pk"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

// Event tells of the order's whole state, so a receiver may apply it as a state. It is for
// the order's customer alone, whose id is the subscriber's, too: without a Subscriber, every
// customer who asks for orders would get it. Set IfSubscriberExists as well if some of your
// customers have no subscriber.
func (o Order) Event() sender.Event {
	return sender.Event{Type: "order.updated", Object: sender.Object{Type: "order", ID: o.ID}, Data: o, Subscriber: o.Customer}
}

// Schema makes the tables. That an order's customer exists is checked at the commit, as
// many schemas have it. So a transaction can fail after everything in it has succeeded.
const Schema = `
CREATE TABLE customers (id text PRIMARY KEY);
CREATE TABLE orders (
	id text PRIMARY KEY,
	customer text NOT NULL REFERENCES customers DEFERRABLE INITIALLY DEFERRED,
	cents bigint NOT NULL
);`
