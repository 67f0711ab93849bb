/** Types of every form that a CRD can have. */
import type { KubernetesObject, LabelSelector } from "../../../src/index.js";

/** A door of a shop. */
interface Door {
  /**
   * @minLength 1
   * @maxLength 10
   */
  name: string;
  /** @default 0.9 */
  width?: number;
}

enum Tier {
  Gold = "Gold",
  Silver = "Silver",
}

/**
 * The desired state.
 *
 * It has a second paragraph
 * over two lines.
 */
interface ShopSpec {
  /**
   * The text of the ConfigMaps,
   * in one line.
   *
   * @pattern ^[A-Z]
   */
  message: string;
  /**
   * @minItems 1
   * @maxItems 3
   */
  doors: readonly Door[];
  /** @default "Plain" */
  style?: "Plain" | "Loud";
  /** @default "Silver" */
  tier?: Tier;
  level?: 1 | 2 | 3;
  /**
   * The number of ConfigMaps.
   *
   * @integer
   * @minimum 0
   * @maximum 5
   * @format int32
   * @default 1
   */
  copies?: number;
  large?: number | bigint;
  openOnSunday?: boolean;
  labels?: Record<string, string>;
  rooms?: { [name: string]: number[] };
  selector?: LabelSelector;
  port?: number | string;
  /** The owner of the shop. */
  owner?: { name: string; phone?: string | null };
  anything?: unknown;
  settings?: Record<string, unknown>;
}

/** The observed state. */
interface ShopStatus {
  /** @integer */
  copies: number;
}

/**
 * A message in several ConfigMaps.
 *
 * @column Message string .spec.message
 * @column Copies integer .status.copies
 * @shortName sh
 */
export interface Shop extends KubernetesObject {
  apiVersion: "example.com/v1";
  kind: "Shop";
  spec: ShopSpec;
  status?: ShopStatus;
}

/**
 * @scope Cluster
 * @plural policies
 */
export interface ShopPolicy extends KubernetesObject {
  apiVersion: "example.com/v1alpha1";
  kind: "ShopPolicy";
  spec?: {
    /**
     * @integer
     * @default 3
     */
    limit?: number;
  };
  status?: Record<string, unknown>;
}
