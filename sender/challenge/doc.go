// Package challenge asks a callback URL whether its owner wants the events, before it is
// registered: so nobody can have a service POST to somebody else's server.
//
//	challenger, err := challenge.New(&challenge.Config{Network: network})
//	reg, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: network, Challenger: challenger})
//
// A [Challenger] POSTs a signed event of type [Type] with a token in it. The endpoint
// answers 2xx with that token, as text or as {"token": "…"}.
package challenge
