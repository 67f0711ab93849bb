/** Certificates for localhost. */
import { createSign, generateKeyPairSync, type KeyObject } from "node:crypto";

/** Returns a self-signed certificate and its key in PEM. */
export function selfSigned(): { cert: string; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = sequence(Buffer.from("06082a8648ce3d040302", "hex")); // ecdsa-with-SHA256
  const body = tbs(publicKey, algorithm);
  const signature = createSign("sha256").update(body).sign(privateKey);
  const der = sequence(body, algorithm, bits(signature));
  const lines = der
    .toString("base64")
    .match(/.{1,64}/g)!
    .join("\n");
  const key = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  return { cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`, key };
}

/**
 * Returns the signed part (RFC 5280, TBSCertificate) of a CA named localhost, for both sides of
 * TLS.
 */
function tbs(publicKey: KeyObject, algorithm: Buffer): Buffer {
  const name = sequence(
    tagged(0x31, sequence(Buffer.from("0603550403", "hex"), tagged(0x0c, Buffer.from("localhost")))),
  );
  const validity = sequence(tagged(0x17, Buffer.from("200101000000Z")), tagged(0x17, Buffer.from("491231000000Z")));
  const names = sequence(
    Buffer.from("0603551d11", "hex"),
    tagged(0x04, sequence(tagged(0x82, Buffer.from("localhost")))),
  );
  const isCA = sequence(
    Buffer.from("0603551d13", "hex"),
    Buffer.from("0101ff", "hex"),
    tagged(0x04, sequence(Buffer.from("0101ff", "hex"))),
  );
  return sequence(
    Buffer.from("a003020102", "hex"),
    Buffer.from("020101", "hex"),
    algorithm,
    name,
    validity,
    name,
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(names, isCA)),
  );
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

function bits(data: Buffer): Buffer {
  return tagged(0x03, Buffer.from([0]), data);
}

function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const data = Buffer.concat(parts);
  const size =
    data.length < 0x80
      ? [data.length]
      : data.length < 0x100
        ? [0x81, data.length]
        : [0x82, data.length >> 8, data.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), data]);
}
