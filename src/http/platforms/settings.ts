/**
 * What a Channel's configuration holds about its platform, checked and complete: where it is, and where its credential comes
 * from.
 */

export interface AwsKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export type AwsSource =
  | { readonly from: 'static'; readonly keys: AwsKeys }
  | { readonly from: 'profile'; readonly name: string; readonly file: string }
  | {
      readonly from: 'web_identity';
      readonly roleArn: string;
      readonly sessionName: string;
      readonly tokenFile: string;
      readonly url: string;
    }
  | { readonly from: 'container'; readonly url: string; readonly token?: string; readonly tokenFile?: string }
  | { readonly from: 'instance'; readonly url: string };

export interface BedrockSettings {
  readonly platform: 'bedrock';
  readonly region: string;
  /** Where the models of the region are listed. */
  readonly controlOrigin: string;
  /** Absent: the Channel has an API key. */
  readonly source?: AwsSource;
}

export type GoogleSource =
  | {
      readonly from: 'service_account';
      readonly email: string;
      readonly keyId?: string;
      readonly privateKey: string;
      readonly url: string;
    }
  | {
      readonly from: 'workload_identity';
      readonly audience: string;
      /** Either a file or an address. */
      readonly tokenFile?: string;
      readonly tokenUrl?: string;
      readonly tokenHeaders?: Readonly<Record<string, string>>;
      readonly tokenField?: string;
      readonly tokenType: string;
      readonly serviceAccount?: string;
      readonly url: string;
      readonly impersonationUrl: string;
    }
  | { readonly from: 'metadata'; readonly url: string };

export interface VertexSettings {
  readonly platform: 'vertex';
  readonly project: string;
  readonly location: string;
  readonly apiVersion: 'v1' | 'v1beta1';
  readonly publisher: 'anthropic' | 'google';
  readonly source: GoogleSource;
}

export type EntraSource =
  | {
      readonly from: 'client_secret';
      readonly tenantId: string;
      readonly clientId: string;
      readonly clientSecret: string;
      readonly url: string;
    }
  | {
      readonly from: 'workload_identity';
      readonly tenantId: string;
      readonly clientId: string;
      readonly tokenFile: string;
      readonly url: string;
    };

export interface AzureSettings {
  readonly platform: 'azure';
  /** Absent: the `v1` interface, where the model of the body is the deployment. */
  readonly apiVersion?: string;
  /** For all models; absent: the upstream's name of each. */
  readonly deployment?: string;
  /** Absent: the Channel has an API key. */
  readonly source?: EntraSource;
}

export type PlatformSettings = BedrockSettings | VertexSettings | AzureSettings;
