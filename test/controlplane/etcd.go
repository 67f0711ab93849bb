//go:build !noetcd

package main

import (
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

func init() { programs["etcd"] = etcdCommand }

// etcdCommand runs one etcd member. It does not wait for the disk, because its data is deleted with
// the cluster.
func etcdCommand() *cobra.Command {
	config := embed.NewConfig()
	var client, peer string
	command := &cobra.Command{
		Use: "etcd", Short: "Run one etcd member", SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error { return runEtcd(config, client, peer) },
	}
	flags := command.Flags()
	flags.StringVar(&config.Dir, "data-dir", "", "folder for the data")
	flags.StringVar(&client, "listen-client-url", "", "URL to serve clients on: https://127.0.0.1:2379")
	flags.StringVar(&peer, "listen-peer-url", "", "URL to serve peers on: http://127.0.0.1:2380")
	flags.StringVar(&config.ClientTLSInfo.CertFile, "cert-file", "", "server certificate")
	flags.StringVar(&config.ClientTLSInfo.KeyFile, "key-file", "", "server key")
	flags.StringVar(&config.ClientTLSInfo.TrustedCAFile, "trusted-ca-file", "", "CA of the clients' certificates")
	flags.Int64Var(&config.QuotaBackendBytes, "quota-backend-bytes", 2<<30, "largest size of the data in bytes")
	return command
}

func runEtcd(config *embed.Config, client, peer string) error {
	clientURL, err := url.Parse(client)
	if err != nil {
		return fmt.Errorf("--listen-client-url: %w", err)
	}
	peerURL, err := url.Parse(peer)
	if err != nil {
		return fmt.Errorf("--listen-peer-url: %w", err)
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ClientTLSInfo.ClientCertAuth = true
	config.UnsafeNoFsync = true
	config.LogLevel = "warn"
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	defer server.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-stop:
		return nil
	case err := <-server.Err():
		return err
	}
}
