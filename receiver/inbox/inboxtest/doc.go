// Package inboxtest is the suite that every [inbox.Store] must pass.
//
//	func TestStore(t *testing.T) {
//		inboxtest.Run(t, func(t *testing.T) inboxtest.Harness[*sql.Tx] {
//			db := … // empty and migrated
//			return inboxtest.Harness[*sql.Tx]{Store: mystore.New(), InTx: receiver.SQL(db, nil)}
//		})
//	}
//
// Each rule is a subtest with a name that does not change, and a failing one says in a
// sentence what the rule is. The suite is itself proved by deliberately broken stores.
package inboxtest
