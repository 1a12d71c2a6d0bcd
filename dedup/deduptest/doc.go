// Package deduptest is the suite that every [dedup.Store] must pass.
//
//	func TestStore(t *testing.T) {
//		db := … // migrated
//		deduptest.Run(t, func(t *testing.T) deduptest.Harness[*sql.Tx] {
//			return deduptest.Harness[*sql.Tx]{Store: mystore.New(), InTx: receiver.SQL(db, nil)}
//		})
//	}
//
// Each rule is a subtest with a name that does not change, and a failing one says
// in a sentence what the rule is. The suite is itself proved by deliberately
// broken stores.
package deduptest
