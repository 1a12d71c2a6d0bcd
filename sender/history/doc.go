// Package history tells what became of events and deliveries: lists, the attempts of a
// delivery, why one has not arrived yet, counts, and figures of each minute. It sends one
// delivery again, and removes the bodies of events that must be forgotten.
//
//	h, err := history.New(store, nil)
//	page, next, err := h.Deliveries(ctx, history.DeliveryQuery{Status: sender.StatusDeadLettered})
//	err = h.Redeliver(ctx, page[0].ID)
//
// For what customers ask, use [History.ForSubscriber]: it shows and sends nothing of
// another subscriber.
//
// It only reads and writes the database: deliveries are attempted by package dispatch, in
// this process or in another one. Package replay sends many again.
package history
