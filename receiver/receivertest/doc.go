// Package receivertest is a sender for tests: it signs events as a real one does,
// and can be as hostile as the network and other people are.
//
//	snd := receivertest.NewSender(t, secret, nil)
//	ev := receivertest.NewEvent("subscriber", "sub_1", 7)
//	require.Equal(t, receiver.Applied, snd.Request(ev).Serve(handler).Result)
//	require.Equal(t, receiver.Duplicate, snd.Request(ev).Serve(handler).Result)
//	require.Equal(t, 401, snd.Request(ev).Tampered().Serve(handler).Status)
//
// Each request is signed when it is sent, at the time of sending, as at-least-once
// delivery requires: a duplicate has the same id and bytes and a fresh signature.
// [Shuffled] brings events into the disorder that a receiver must bear, and [Hostile]
// tries a handler with all of it.
package receivertest
