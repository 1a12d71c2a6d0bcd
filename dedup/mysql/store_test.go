package mysql_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup/internal/niltest"
	"github.com/surehook/surehook/dedup/mysql"
)

// The tests that need a server and a driver are in internal/proof/mysql, a module of its own.

func TestNilTransaction(t *testing.T) { niltest.Refused(t, mysql.New()) }

func TestNilDB(t *testing.T) {
	require.Nil(t, mysql.InTx(nil, nil), "receiver.New refuses it")
}

func TestMigrations(t *testing.T) {
	names, err := fs.Glob(mysql.Migrations(), "*")
	require.NoError(t, err)
	require.Equal(t, []string{"001_dedup.sql"}, names)
}
