package main

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/pki"
)

// tlsFiles are the flags of a client for https addresses.
type tlsFiles struct{ ca, cert, key string }

// The variables have CLIENT in their names where the server's settings have the
// same flags: a file of variables may be read by both.
const envCA, envCert, envKey = "REPRISE_CLIENT_TLS_CA", "REPRISE_CLIENT_TLS_CERT", "REPRISE_CLIENT_TLS_KEY"

func (f *tlsFiles) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.ca, "tls-ca", "", "for https: trust these authorities, PEM (default $"+envCA+", else the system's)")
	flags.StringVar(&f.cert, "tls-cert", "", "for https: certificate of this client, PEM (default $"+envCert+")")
	flags.StringVar(&f.key, "tls-key", "", "for https: its private key, PEM (default $"+envKey+")")
}

func (f *tlsFiles) load() (*tls.Config, error) {
	return client.LoadTLS(cmp.Or(f.ca, os.Getenv(envCA)), cmp.Or(f.cert, os.Getenv(envCert)), cmp.Or(f.key, os.Getenv(envKey)))
}

func newTLSCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "tls",
		Short: "Make certificates for servers and clients",
		Long: `Make certificates for servers and clients, signed by an authority of your own.

An authority that your company has already serves as well: "reprise serve" takes
any certificate in PEM.`,
		Example: `  reprise tls init --san queue.internal --client worker-1
  reprise tls client-cert --name worker-2
  reprise tls server-cert --san queue.internal --overwrite   # before the old one ends`,
	}, newTLSInitCommand(), newTLSCACommand(), newTLSServerCommand(), newTLSClientCommand())
}

// certFlags are flags that the commands below share.
type certFlags struct {
	pki.Options
	names []string
}

// localNames are what a server on this machine is called.
var localNames = []string{"localhost", "127.0.0.1", "::1"}

// command makes the command that makes files, with --out-dir, --overwrite and more flags.
func (f *certFlags) command(cmd *cobra.Command, more ...func(*cobra.Command)) *cobra.Command {
	if cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.make(cmd.OutOrStdout()) }
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	root := cmp.Or(os.Getenv("REPRISE_ROOT_DIR"), "reprise-root")
	flags.StringVar(&f.Dir, "out-dir", filepath.Join(root, "tls"), "directory for the files")
	flags.BoolVar(&f.Overwrite, "overwrite", false, "replace files that exist")
	for _, add := range more {
		add(cmd)
	}
	return cmd
}

func (f *certFlags) days(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.Days, "days", 365, "how long the certificates hold")
}

func (f *certFlags) san(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.names, "san", nil, "name or address that clients call the server by; may be repeated (default "+strings.Join(localNames, ", ")+")")
}

func (f *certFlags) authority(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.CACert, "ca-cert", "", "certificate of the authority (default "+pki.CACert+" in --out-dir)")
	cmd.Flags().StringVar(&f.CAKey, "ca-key", "", "key of the authority (default "+pki.CAKey+" in --out-dir)")
}

// make makes the files and tells which.
func (f *certFlags) make(w io.Writer) error {
	if f.Names = f.names; len(f.Names) == 0 {
		f.Names = localNames
	}
	f.Now = time.Now()
	f.CACert = cmp.Or(f.CACert, filepath.Join(f.Dir, pki.CACert))
	f.CAKey = cmp.Or(f.CAKey, filepath.Join(f.Dir, pki.CAKey))
	paths, err := pki.Make(f.Options)
	for _, path := range paths {
		fmt.Fprintln(w, "wrote", path)
	}
	return err
}

func newTLSInitCommand() *cobra.Command {
	var f certFlags
	cmd := f.command(&cobra.Command{
		Use:   "init",
		Short: "Make an authority, a certificate of the server, and of clients",
		Long: `Make an authority, a certificate of the server, and certificates of clients, and
say how to start with them. With --ca-cert and --ca-key the authority is one
that exists. Nothing is written over unless --overwrite is given.

Keep ca-key.pem away from the servers: whoever has it can make certificates.`,
		Example: `  reprise tls init
  reprise tls init --san queue.internal --san 10.0.0.5 --client worker-1 --client worker-2`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (f.CACert == "") != (f.CAKey == "") {
				return usagef("--ca-cert and --ca-key go together")
			}
			f.NewCA, f.Server = f.CACert == "", true
			if err := f.make(cmd.OutOrStdout()); err != nil {
				return err
			}
			_, err := io.WriteString(cmd.OutOrStdout(), f.next())
			return err
		},
	}, f.san, f.days)
	cmd.Flags().IntVar(&f.CADays, "ca-days", 3650, "how long the authority holds")
	cmd.Flags().StringVar(&f.CAName, "cn", "Reprise CA", "name of the authority")
	cmd.Flags().StringVar(&f.CACert, "ca-cert", "", "certificate of an authority that exists")
	cmd.Flags().StringVar(&f.CAKey, "ca-key", "", "its key")
	cmd.Flags().StringArrayVar(&f.Clients, "client", nil, "name of a client to make a certificate for; may be repeated")
	return cmd
}

// next says how to go on.
func (f *certFlags) next() string {
	in := func(name string) string { return filepath.Join(f.Dir, name) }
	serve := "reprise serve --tls-cert " + in(pki.ServerCert) + " --tls-key " + in(pki.ServerKey)
	call := "reprise jobs list --url https://" + net.JoinHostPort(f.Names[0], "7890") + " --tls-ca " + f.CACert
	if len(f.Clients) > 0 {
		serve += " --tls-client-ca " + f.CACert
		call += " --tls-cert " + in(pki.ClientCert(f.Clients[0])) + " --tls-key " + in(pki.ClientKey(f.Clients[0]))
	}
	for _, name := range f.names {
		if net.ParseIP(name) == nil && name != "localhost" && !strings.Contains(name, "*") {
			serve += " --allow-host " + name
		}
	}
	return "\nStart the server with\n\n  " + serve + "\n\nand call it with\n\n  " + call + "\n"
}

func newTLSCACommand() *cobra.Command {
	f := certFlags{Options: pki.Options{NewCA: true, Days: 1}}
	cmd := f.command(&cobra.Command{
		Use: "ca", Short: "Make an authority",
		Example: "  reprise tls ca --out-dir /etc/reprise/ca",
	})
	cmd.Flags().IntVar(&f.CADays, "days", 3650, "how long the authority holds")
	cmd.Flags().StringVar(&f.CAName, "cn", "Reprise CA", "its name")
	return cmd
}

func newTLSServerCommand() *cobra.Command {
	f := certFlags{Options: pki.Options{Server: true}}
	return f.command(&cobra.Command{
		Use: "server-cert", Short: "Make a certificate of a server",
		Example: "  reprise tls server-cert --san queue.internal",
	}, f.san, f.days, f.authority)
}

func newTLSClientCommand() *cobra.Command {
	var f certFlags
	return f.command(&cobra.Command{
		Use: "client-cert", Short: "Make certificates of clients",
		Example: "  reprise tls client-cert --name worker-2",
	}, func(cmd *cobra.Command) {
		cmd.Flags().StringArrayVar(&f.Clients, "name", nil, "name of the client; may be repeated")
		must(cmd.MarkFlagRequired("name"))
	}, f.days, f.authority)
}
