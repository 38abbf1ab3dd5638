// Package pki makes a small authority of its own and certificates of servers
// and clients, for those who have none: files that `reprise serve` and
// `reprise ... --tls-ca` read.
//
// Keys are ECDSA on P-256, files are PEM, keys can be read by their owner
// only. Nothing that exists is written over unless it is asked for, and all is
// made before anything is written.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// The names of the files in Options.Dir; those of clients hold their name.
const (
	CACert     = "ca-cert.pem"
	CAKey      = "ca-key.pem"
	ServerCert = "server-cert.pem"
	ServerKey  = "server-key.pem"
)

// ClientCert and ClientKey are the names of a client's files.
func ClientCert(name string) string { return "client-" + name + "-cert.pem" }

// ClientKey is the name of a client's key.
func ClientKey(name string) string { return "client-" + name + "-key.pem" }

// Options say what to make.
type Options struct {
	Dir string    // created if it is missing
	Now time.Time // certificates hold from an hour before, for clocks that differ

	// The authority: a new one, or the one in two files (paths as they are).
	NewCA         bool
	CACert, CAKey string
	CAName        string // its common name, if it is new
	CADays        int    // how long a new one holds

	Server  bool     // a certificate for a server,
	Names   []string // which holds for these names and addresses
	Clients []string // a certificate for each of these clients
	Days    int      // how long certificates of servers and clients hold

	Overwrite bool
}

// daysMax is a century.
const daysMax = 36_500

var (
	clientName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	hostName   = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)
)

// Make makes what is asked for and returns the paths of the files it wrote.
func Make(o Options) ([]string, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	m := maker{Options: o}
	ca, err := m.authority()
	if err != nil {
		return nil, err
	}
	if o.Server {
		leaf := m.leaf("Reprise server", x509.ExtKeyUsageServerAuth)
		for _, name := range o.Names {
			if ip := net.ParseIP(name); ip != nil {
				leaf.IPAddresses = append(leaf.IPAddresses, ip)
			} else {
				leaf.DNSNames = append(leaf.DNSNames, name)
			}
		}
		if err := m.issue(leaf, ca, ServerCert, ServerKey); err != nil {
			return nil, err
		}
	}
	for _, name := range o.Clients {
		if err := m.issue(m.leaf(name, x509.ExtKeyUsageClientAuth), ca, ClientCert(name), ClientKey(name)); err != nil {
			return nil, err
		}
	}
	return m.write()
}

func (o *Options) validate() error {
	if o.Days < 1 || o.Days > daysMax || o.NewCA && (o.CADays < 1 || o.CADays > daysMax) {
		return fmt.Errorf("certificates hold from 1 to %d days", daysMax)
	}
	if o.Server && len(o.Names) == 0 {
		return errors.New("a server needs at least one name or address that clients call it by")
	}
	for _, name := range o.Names {
		if net.ParseIP(name) == nil && (!hostName.MatchString(name) || len(name) > 253) {
			return fmt.Errorf("%q is no host name and no IP address", name)
		}
	}
	for i, name := range o.Clients {
		if !clientName.MatchString(name) {
			return fmt.Errorf("%q is no name for a client: 1 to 64 letters, digits and . _ -, as it becomes part of a file's name", name)
		}
		for _, other := range o.Clients[:i] {
			if other == name {
				return fmt.Errorf("the client %q is named twice", name)
			}
		}
	}
	return nil
}

// maker collects files.
type maker struct {
	Options
	files []file
}

type file struct {
	path    string
	content []byte
	mode    fs.FileMode
}

// authority is who signs.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// authority makes a new authority, or reads the one there is.
func (m *maker) authority() (*authority, error) {
	if !m.NewCA {
		return m.readAuthority()
	}
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: m.CAName},
		NotBefore:             m.Now.Add(-time.Hour),
		NotAfter:              m.Now.AddDate(0, 0, m.CADays),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	ca := &authority{cert: t, key: key}
	der, err := m.sign(t, ca, key, CACert, CAKey)
	if err != nil {
		return nil, err
	}
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("reading the new authority: %w", err)
	}
	return ca, nil
}

func (m *maker) readAuthority() (*authority, error) {
	certDER, err := readPEM(m.CACert, "CERTIFICATE")
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, fmt.Errorf("the authority's certificate %s: %w", m.CACert, err)
	}
	keyDER, err := readPEM(m.CAKey, "PRIVATE KEY")
	if err != nil {
		return nil, fmt.Errorf("the authority's key: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyDER)
	if err != nil {
		return nil, fmt.Errorf("the authority's key %s: %w", m.CAKey, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	switch {
	case !ok:
		return nil, fmt.Errorf("the authority's key %s is not an ECDSA key, as `reprise tls` makes them", m.CAKey)
	case !cert.IsCA:
		return nil, fmt.Errorf("%s is no authority: its certificate may not sign others", m.CACert)
	case !key.PublicKey.Equal(cert.PublicKey):
		return nil, fmt.Errorf("%s is not the key of %s", m.CAKey, m.CACert)
	case cert.NotAfter.Before(m.Now.AddDate(0, 0, m.Days)):
		return nil, fmt.Errorf("the authority %s ends on %s, before the %d days that are asked for; give fewer days or make a new authority",
			m.CACert, cert.NotAfter.Format(time.DateOnly), m.Days)
	}
	return &authority{cert, key}, nil
}

func readPEM(path, kind string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s does not begin with a PEM block %q", path, kind)
	}
	return block.Bytes, nil
}

// leaf is a certificate that signs nothing.
func (m *maker) leaf(name string, use x509.ExtKeyUsage) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             m.Now.Add(-time.Hour),
		NotAfter:              m.Now.AddDate(0, 0, m.Days),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{use},
		BasicConstraintsValid: true,
	}
}

func (m *maker) issue(t *x509.Certificate, ca *authority, certName, keyName string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	_, err = m.sign(t, ca, key, certName, keyName)
	return err
}

// sign signs a certificate for key and collects both as files.
func (m *maker) sign(t *x509.Certificate, ca *authority, key *ecdsa.PrivateKey, certName, keyName string) ([]byte, error) {
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // never fails (crypto/rand)
	serial[0] &= 0x7f
	t.SerialNumber = new(big.Int).SetBytes(serial)
	der, err := x509.CreateCertificate(rand.Reader, t, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", certName, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", keyName, err)
	}
	const everybody, owner = 0o644, 0o600
	m.add(certName, "CERTIFICATE", der, everybody)
	m.add(keyName, "PRIVATE KEY", keyDER, owner)
	return der, nil
}

func (m *maker) add(name, kind string, der []byte, mode fs.FileMode) {
	content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	m.files = append(m.files, file{filepath.Join(m.Dir, name), content, mode})
}

// write looks for files in the way, then writes all.
func (m *maker) write() ([]string, error) {
	if !m.Overwrite {
		for _, f := range m.files {
			if _, err := os.Lstat(f.path); err == nil {
				return nil, fmt.Errorf("%s exists; choose another directory, or replace it with --overwrite: "+
					"whoever trusts the old one would have to be told of the new one", f.path)
			}
		}
	}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return nil, err
	}
	var paths []string
	for _, f := range m.files {
		if err := f.write(m.Overwrite); err != nil {
			return paths, err
		}
		paths = append(paths, f.path)
	}
	return paths, nil
}

// write puts a file in place as a whole, with its mode from the beginning.
func (f file) write(overwrite bool) error {
	if overwrite {
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	w, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return err
	}
	_, err = w.Write(f.content)
	return errors.Join(err, w.Close())
}
